// Hands one row to the reference.
#include "ops/attention/epilogue/recompute_rows.h"

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "ops/reference/reference_attention.h"

namespace headway {

bool output_row_is_finite(const TensorView& out, const std::byte* row, std::int64_t columns) {
  const std::int64_t stride = out.strides[3];
  if (out.type == DataType::kBF16) return all_finite(reinterpret_cast<const BFloat16*>(row), columns, stride);
  return all_finite(reinterpret_cast<const float*>(row), columns, stride);
}

void recompute_nonfinite_row(const AttentionSpec& spec, const AttentionArgs& args, const OutputRow& row) {
  AttentionSpec without_scores = spec;
  without_scores.scores_output = ScoresOutput::kNone;
  AttentionArgs only_out = args;
  only_out.log_sum_exp = {};
  reference_attention_rows(without_scores, only_out, {row.batch, row.head, row.query, row.query + 1});
}

void clear_hidden_probs(const AttentionSpec& spec, const AttentionArgs& args, const OutputRow& row, float* probs) {
  for (std::int64_t j = 0; j < spec.key_len; ++j) {
    if (reference_bias(spec, args, {row.batch, row.head, row.query, j}) == kHiddenScore) probs[j] = 0;
  }
}

}  // namespace headway
