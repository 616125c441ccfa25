// Probabilities without their matrix: any tile of them from query, key, masks and the log-sum-exp of a run. Usable with
// no graph. Knows no implementation.
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Queries [query_begin, query_end) against keys [key_begin, key_end) of one head.
struct ProbabilityTile {
  std::int64_t batch = 0;
  std::int64_t head = 0;  ///< of the Hq query heads
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_end = 0;
};

/// to = exp(score + bias − log_sum_exp): what ScoresOutput::kProbabilities writes, but only where it is asked for.
///
///   args  query, key, masks, lengths and offsets of a run, and the log_sum_exp that it wrote; value, out and scores
///   are
///         not looked at
///   to    [query_end − query_begin, key_end − key_begin] f32, any strides; must not alias an input
///
/// Numerics: scores accumulate in f32; |to − exact| ≤ ε·p·(c1 + c2·M), constants in headway/numerical_bound.h, and what
/// log_sum_exp is away from exact (10⁻⁴·p after "bf16_pairs"). A hidden key gives exactly 0 and is not read where
/// causal limit, window or length hides it; an empty row is 0 or NaN by spec.empty_row; NaN in a visible score gives
/// NaN there, and where it is in the log_sum_exp in all visible keys. Throws Error kInvalidArgument naming the argument
/// and both numbers, before anything is written. Thread-safe. Allocates 8·D floats and less than 100 KB besides,
/// whatever the tile. Cost: 2·D flops and an exp per pair.
HEADWAY_API void attention_probabilities(const AttentionSpec& spec, const AttentionArgs& args,
                                         const ProbabilityTile& tile, const TensorView& to);

}  // namespace headway
