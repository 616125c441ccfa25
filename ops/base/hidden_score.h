// The two floats that stand for "no score" in every mask, kernel and engine. Knows no tensors.
#pragma once

#include <limits>

namespace headway {

/// Score and bias of a hidden key.
inline constexpr float kHiddenScore = -std::numeric_limits<float>::infinity();
/// Where a running maximum starts. Not −inf: exp(−inf − maximum) must be 0 before the first visible score.
inline constexpr float kLowestScore = std::numeric_limits<float>::lowest();

}  // namespace headway
