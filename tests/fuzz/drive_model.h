// What the library makes of a model: imported, fused, explained, planned and run within a small budget, as it stands
// and fused, and the two held against each other. Decides what counts as a finding.
#pragma once

#include <cstdint>
#include <string>

namespace headway::fuzz {

struct DriveResult {
  bool ran = false;        ///< else it was refused with an Error
  std::string refusal;     ///< its message
  std::string finding;     ///< empty: nothing is wrong
  std::int64_t fused = 0;  ///< groups that fusion replaced
};

/// `bytes` of an ONNX file. Inputs are random by `seed`, small, and of the dims that the file asks for. Findings:
/// fused and unfused disagree (one refuses, the words differ, the numbers differ), an exception that is no Error, an
/// Error of kInternal, a message of several lines or more than 300 characters.
DriveResult drive_model(const std::string& bytes, std::uint64_t seed);

}  // namespace headway::fuzz
