// One attention problem with data: what a test describes, and the tensors made from it. Knows no implementation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headway/attention.h"
#include "tests/support/strided.h"

namespace headway::testing {

/// What to make.
struct CaseShape {
  AttentionSpec spec;
  Layout layout = Layout::kBhsd;      ///< of query, key, value and out
  Dims mask_dims;                     ///< when spec.mask; empty: [Sq, Skv]
  std::int64_t key_mask_keys = -1;    ///< −1: key_len
  double hidden = 0.3;                ///< share of mask elements that hide
  std::vector<std::int64_t> lengths;  ///< when spec.key_lengths
  std::vector<std::int64_t> offsets;  ///< given when not empty
  bool integers_are_i32 = false;
  DataType mask_type = DataType::kF32;  ///< of additive masks; bf16 rounds mask_values where args() is made
  std::uint64_t seed = 1;
};
/// One line for messages.
std::string describe(const CaseShape& shape);

/// The tensors of one problem; queries, keys and values standard normal, masks random, output poisoned. In bf16 they
/// hold the same numbers, rounded.
class AttentionCase {
 public:
  explicit AttentionCase(const CaseShape& shape);
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  const AttentionSpec& spec() const { return spec_; }  ///< complete
  const CaseShape& shape() const { return shape_; }
  AttentionArgs args();
  void poison_outputs();

  Strided query, key, value, out, scores;
  Strided log_sum_exp;                  ///< [B, Hq, Sq, 1]; given to a run when the seed is odd
  std::vector<float> mask_values;       ///< elements of an additive mask, contiguous
  std::vector<std::uint8_t> mask_bits;  ///< of a bool mask
  std::vector<float> key_mask_values;
  std::vector<std::uint8_t> key_mask_bits;

 private:
  void make_masks(Random& random);

  CaseShape shape_;
  AttentionSpec spec_;
  Dims mask_dims_;
  Dims key_mask_dims_;
  std::vector<std::int32_t> lengths_i32_, offsets_i32_;
  std::vector<BFloat16> mask_halves_, key_mask_halves_;
};

}  // namespace headway::testing
