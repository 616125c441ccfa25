// What is added to the scores of a token: ALiBi, a bias by distance and the user's mask, as rows of f32 in which −inf
// hides. Knows neither causality nor windows (sequences.h).
#pragma once

#include <cstdint>

#include "headway/cached_attention.h"
#include "ops/cached_attention/sequences.h"

namespace headway {

class RowBias {
 public:
  explicit RowBias(const CachedAttentionArgs& args) : args_(args) {}

  /// False when every bias is 0.
  bool any() const { return per_head() || args_.mask.present; }
  /// Whether heads have biases of their own.
  bool per_head() const { return args_.alibi_slopes.present || args_.relative_bias.present; }
  /// Bias of `token` of `sequence`, in a head, for keys [key, key + count).
  void fill(const Sequence& sequence, std::int64_t token, std::int64_t head, std::int64_t key, std::int64_t count,
            float* row) const;

 private:
  void add_distances(std::int64_t position, std::int64_t head, std::int64_t key, std::int64_t count, float* row) const;
  void add_mask(const Sequence& sequence, std::int64_t token, std::int64_t key, std::int64_t count, float* row) const;

  const CachedAttentionArgs& args_;
};

}  // namespace headway
