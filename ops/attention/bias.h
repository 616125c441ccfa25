// The user's masks as numbers: bool and additive, any broadcast, any polarity, and the key mask, as rows of f32 bias.
// Knows neither causality nor windows (visibility.h).
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Both user masks of one run, read one tile at a time. Holds views; allocates nothing.
class BiasSource {
 public:
  BiasSource(const AttentionSpec& spec, const AttentionArgs& args);

  /// False when there is no user mask at all: every bias is 0.
  bool any() const { return mask_kind_ != MaskKind::kNone || key_mask_kind_ != MaskKind::kNone; }
  /// True when the bias does not depend on the query, so that one row serves a whole block.
  bool same_for_all_queries() const;
  /// True when the bias does not depend on the head.
  bool same_for_all_heads() const { return mask_kind_ == MaskKind::kNone || mask_.strides[1] == 0; }

  /// Whether fill() of these keys would only copy: the mask is contiguous f32 and there is no key mask.
  bool in_place(std::int64_t key, std::int64_t keys) const;
  /// Where fill() would copy from for one query.
  const float* row(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t key) const;

  /// Bias of queries [query, query + rows) against keys [key, key + keys) of batch b, head h, row-major with `ld`
  /// floats per row. Always visible keys get 0; keys beyond a short mask get −inf.
  void fill(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t rows, std::int64_t key, std::int64_t keys,
            float* tile, std::int64_t ld) const;

 private:
  const std::byte* mask_at(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t key) const;

  MaskKind mask_kind_;
  MaskKind key_mask_kind_;
  bool true_attends_;
  ConstTensorView mask_;      // [B, Hq, Sq, mask_keys_], stride 0 on broadcast axes
  ConstTensorView key_mask_;  // [B, key_mask_keys_]
  std::int64_t mask_keys_;    // keys that the mask covers; the rest up to the tail is hidden
  std::int64_t tail_begin_;
};

}  // namespace headway
