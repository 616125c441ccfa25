// Reads a source tree and holds it against rules.h. Knows no rule of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headway::layers {

/// Every violation below `root`, one line each: "ops/simd/exp.cc:7: includes …".
std::vector<std::string> violations(const std::filesystem::path& root);

/// Number of source files that violations() looks at, to prove that it looked.
std::size_t source_file_count(const std::filesystem::path& root);

}  // namespace headway::layers
