// Rows that a hidden NaN or infinity reached, or whose sum overflowed before it was divided: the reference computes
// them again, as it never reads a hidden value and sums in double. Knows no tiles.
#pragma once

#include <cmath>
#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// One query row of one head.
struct OutputRow {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;
};

/// Whether a row must be computed again: the probability of a hidden key is exactly 0, but 0·NaN is NaN. A NaN in a
/// visible score makes the sum of the exps NaN as well, and then NaN is the result.
inline bool must_recompute(float sum_of_exps, bool output_is_finite) {
  return !output_is_finite && std::isfinite(sum_of_exps);
}

/// Whether none of the `columns` elements of a row of args.out is NaN or infinite.
bool output_row_is_finite(const TensorView& out, const std::byte* row, std::int64_t columns);

/// Computes one row of args.out again. Scores and log_sum_exp were written already and are left alone.
void recompute_nonfinite_row(const AttentionSpec& spec, const AttentionArgs& args, const OutputRow& row);

/// Sets the probabilities of the keys that the row does not see to 0, of all key_len. For a row whose sum of exps is
/// NaN or 0, as NaN and infinite scores make it: divided by it, they are NaN like the others.
void clear_hidden_probs(const AttentionSpec& spec, const AttentionArgs& args, const OutputRow& row, float* probs);

}  // namespace headway
