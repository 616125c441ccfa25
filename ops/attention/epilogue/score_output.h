// The scores that a caller asked for besides the output: which modes there are, where a row of them lies, and how
// computed values get there. Knows no tiles; values come as dense floats.
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Modes kScaled and kSoftcapped: the scores of all Skv keys, hidden or not.
inline bool has_raw_scores(const AttentionSpec& spec) {
  return spec.scores_output == ScoresOutput::kScaled || spec.scores_output == ScoresOutput::kSoftcapped;
}
inline bool has_mean_probs(const AttentionSpec& spec) { return spec.scores_output == ScoresOutput::kMeanProbabilities; }
/// Modes that hold the result of the softmax.
inline bool has_probs(const AttentionSpec& spec) {
  return spec.scores_output == ScoresOutput::kProbabilities || has_mean_probs(spec);
}
/// Heads that one task must take in turn: all of them where probabilities are averaged, so that the order of the sum
/// does not depend on the threads; else 1.
inline std::int64_t heads_in_turn(const AttentionSpec& spec) { return has_mean_probs(spec) ? spec.num_heads : 1; }

/// The rows of args.scores.
class ScoreOutput {
 public:
  ScoreOutput(const AttentionSpec& spec, const AttentionArgs& args);

  /// Floats between the scores of neighbouring keys.
  std::int64_t key_stride() const { return key_stride_; }
  /// True when an engine may compute in the caller's rows: keys are neighbours and nothing is averaged.
  bool is_dense() const { return key_stride_ == 1 && !mean_; }
  /// First key of a row; the same for all heads where probabilities are averaged.
  float* row(std::int64_t batch, std::int64_t head, std::int64_t query) const;

  /// Keys [key, key + count) of `row`: overwritten, or added with the share of one head where probabilities are
  /// averaged.
  void write(float* row, std::int64_t key, const float* values, std::int64_t count) const;
  /// All keys of `row`.
  void fill(float* row, float value) const;
  /// Zeroes queries [begin, end): the sums over heads start from there. Only where probabilities are averaged.
  void clear_mean(std::int64_t batch, std::int64_t begin, std::int64_t end) const;

 private:
  const TensorView& scores_;
  std::int64_t keys_;
  std::int64_t key_stride_;
  float head_share_;  // of a mean
  bool mean_;
};

}  // namespace headway
