// The mask rules of the reference, one pair at a time, straight from their definition. Knows no scores.
#include <algorithm>

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"
#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

std::int64_t integer_at(const ConstTensorView& view, std::int64_t index) {
  const std::int64_t at = index * view.strides[0];
  return view.type == DataType::kI32 ? view.as<std::int32_t>()[at] : view.as<std::int64_t>()[at];
}

/// What one element of a mask adds to the score.
float element_bias(const ConstTensorView& mask, std::int64_t at, MaskKind kind, MaskPolarity polarity) {
  if (kind == MaskKind::kAdditive) {
    return mask.type == DataType::kBF16 ? widen(mask.as<BFloat16>()[at]) : mask.as<float>()[at];
  }
  // Bytes from outside: whatever is not zero is true.
  const bool set = reinterpret_cast<const unsigned char*>(mask.as<bool>())[at] != 0;
  const bool attends = set == (polarity == MaskPolarity::kTrueAttends);
  return attends ? 0.0f : kHiddenScore;
}

/// The [.., Sq, n] mask at one pair: axes are counted from the right, a dim of 1 broadcasts, a key from n on is hidden.
float mask_bias(const AttentionSpec& spec, const ConstTensorView& mask, const ReferencePair& pair) {
  const std::int64_t full[4] = {pair.batch, pair.head, pair.query, pair.key};
  std::int64_t at = 0;
  for (int axis = 0; axis < mask.rank(); ++axis) {
    if (mask.dims[axis] == 1) continue;
    const std::int64_t index = full[4 - mask.rank() + axis];
    if (index >= mask.dims[axis]) return kHiddenScore;
    at += index * mask.strides[axis];
  }
  return element_bias(mask, at, spec.mask, spec.mask_polarity);
}

/// Where query i stands among the keys.
std::int64_t position(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch, std::int64_t query) {
  if (spec.causal == Causal::kTopLeft) return query;
  if (spec.causal == Causal::kBottomRight) return query + (spec.key_len - spec.always_visible_keys) - spec.query_len;
  if (spec.causal == Causal::kLastKey) {
    std::int64_t keys = spec.key_len - spec.always_visible_keys;
    if (spec.key_lengths) keys = std::min(keys, integer_at(args.key_lengths, batch));
    return query + keys - spec.query_len;
  }
  return args.offsets ? query + integer_at(args.offsets, batch) : query;
}

}  // namespace

bool reference_position_visible(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch,
                                std::int64_t query, std::int64_t key) {
  if (key >= spec.key_len - spec.always_visible_keys) return true;
  if (spec.key_lengths && key >= integer_at(args.key_lengths, batch)) return false;
  const std::int64_t p = position(spec, args, batch, query);
  if (spec.causal != Causal::kNone && key > p) return false;
  if (spec.window.left >= 0 && key < p - spec.window.left) return false;
  if (spec.window.right >= 0 && key > p + spec.window.right) return false;
  return true;
}

float reference_bias(const AttentionSpec& spec, const AttentionArgs& args, const ReferencePair& pair) {
  if (!reference_position_visible(spec, args, pair.batch, pair.query, pair.key)) return kHiddenScore;
  if (pair.key >= spec.key_len - spec.always_visible_keys) return 0;
  float from_mask = 0;
  if (spec.mask != MaskKind::kNone) from_mask = mask_bias(spec, args.mask, pair);
  if (from_mask == kHiddenScore) return kHiddenScore;
  float from_keys = 0;
  if (spec.key_mask != MaskKind::kNone) {
    const std::int64_t at = pair.batch * args.key_mask.strides[0] + pair.key * args.key_mask.strides[1];
    from_keys = element_bias(args.key_mask, at, spec.key_mask, spec.mask_polarity);
  }
  if (from_keys == kHiddenScore) return kHiddenScore;
  const float sum = from_mask + from_keys;
  return sum == kHiddenScore ? kLowestScore : sum;
}

}  // namespace headway
