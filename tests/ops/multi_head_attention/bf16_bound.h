// How far a layer in bf16 may be from the exact one on the same bf16 numbers, besides what an f32 layer may be.
#pragma once

namespace headway::testing {

// out is rounded once, 2^-8·|exact| at most. The context and the projected value are rounded before, each by up to 2^-8
// of the largest value; these errors go both ways and are summed with the row Wo[e] as weights, so that its norm is
// what remains of them: |got − exact| ≤ 2^-8 · (|exact| + kBf16LayerBound · ‖Wo[e]‖ · max|v|). Rounding q and k shifts
// a score by up to 2^-8 of its terms, in both directions, and so its weight by that share: the constant allows for it.
inline constexpr double kBf16LayerBound = 3;

// Scores and probabilities: 2^-8 · kBf16ScoreBound · (1 + |exact|).
inline constexpr double kBf16ScoreBound = 16;

}  // namespace headway::testing
