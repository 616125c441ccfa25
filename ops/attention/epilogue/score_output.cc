// Strides of the two shapes of scores, [B, Hq, Sq, Skv] and [B, Sq, Skv].
#include "ops/attention/epilogue/score_output.h"

namespace headway {

ScoreOutput::ScoreOutput(const AttentionSpec& spec, const AttentionArgs& args)
    : scores_(args.scores),
      keys_(spec.key_len),
      key_stride_(args.scores.strides[args.scores.rank() - 1]),
      head_share_(1.0f / static_cast<float>(spec.num_heads)),
      mean_(has_mean_probs(spec)) {}

float* ScoreOutput::row(std::int64_t batch, std::int64_t head, std::int64_t query) const {
  const Dims& s = scores_.strides;
  float* const base = scores_.as<float>() + batch * s[0];
  return mean_ ? base + query * s[1] : base + head * s[1] + query * s[2];
}

void ScoreOutput::write(float* row, std::int64_t key, const float* values, std::int64_t count) const {
  float* const to = row + key * key_stride_;
  if (mean_) {
    for (std::int64_t j = 0; j < count; ++j) to[j * key_stride_] += head_share_ * values[j];
  } else {
    for (std::int64_t j = 0; j < count; ++j) to[j * key_stride_] = values[j];
  }
}

void ScoreOutput::fill(float* row, float value) const {
  for (std::int64_t j = 0; j < keys_; ++j) row[j * key_stride_] = value;
}

void ScoreOutput::clear_mean(std::int64_t batch, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t i = begin; i < end; ++i) fill(row(batch, 0, i), 0.0f);
}

}  // namespace headway
