// One attention problem at random on every implementation, every SIMD target of this machine and one and two threads.
// Decides what counts as a finding; knows no file and no graph.
#pragma once

#include <cstdint>
#include <string>

namespace headway::fuzz {

struct AttentionFinding {
  std::string kind;     ///< how the data were made: "plain", "hidden poison", …
  std::string finding;  ///< empty: all is well
};

/// The problem of this number, as tests/support/random_attention.h draws it, with data of its own: larger scores, rows
/// without a visible key, keys and values in another layout than the queries, masks by strides, NaN and infinity in
/// hidden and in visible keys. A finding is a result beyond the bound of numerical_bound.h, another result on two
/// threads, something written beside the output, or a refusal of what the implementation says it takes.
AttentionFinding drive_attention(std::uint64_t number);

}  // namespace headway::fuzz
