// The f32 weights of a file's bytes: whether they are fit for a comparison, and others beside them. Knows no graph.
#pragma once

#include <cstdint>
#include <string>

namespace headway::fuzz {

/// Whether weights are so large that their squares are none: flipped bits. What overflows on the way differs fused.
bool holds_huge_weights(const std::string& bytes);

/// The file with its f32 weights a rounding or two apart.
std::string nudged(const std::string& bytes, std::uint64_t nudge);

}  // namespace headway::fuzz
