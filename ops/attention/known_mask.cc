// One pass over the rows of a mask.
#include "ops/attention/known_mask.h"

#include <algorithm>

#include "ops/base/hidden_score.h"

namespace headway {
namespace {

/// Added to any score that is not as large itself, this underflows in the softmax.
constexpr float kAsGoodAsHidden = -1e30f;

enum class Element { kVisible, kHidden, kLow, kOther };

Element element(const ConstTensorView& mask, std::int64_t at, bool true_attends) {
  if (mask.type == DataType::kBool) {
    return (mask.data[at] != std::byte{0}) == true_attends ? Element::kVisible : Element::kHidden;
  }
  const float value = reinterpret_cast<const float*>(mask.data)[at];
  if (value == 0) return Element::kVisible;
  if (value == kHiddenScore) return Element::kHidden;
  return value <= kAsGoodAsHidden ? Element::kLow : Element::kOther;
}

/// Visible keys of a row when they are its first ones, −1 when the row is anything else.
std::int64_t visible_prefix(const ConstTensorView& mask, std::int64_t row, bool true_attends) {
  const std::int64_t keys = mask.dims.back();
  std::int64_t visible = 0;
  bool low = false;
  for (std::int64_t j = 0; j < keys; ++j) {
    const Element e = element(mask, row * keys + j, true_attends);
    if (e == Element::kOther || (e == Element::kVisible && visible != j)) return -1;
    if (e == Element::kVisible) ++visible;
    low |= e == Element::kLow;
  }
  // Where all keys are merely low, they share the row evenly: that is no empty row.
  return low && visible == 0 ? -1 : visible;
}

}  // namespace

void use_known_mask(const ConstTensorView& mask, AttentionSpec* spec) {
  if (spec->mask == MaskKind::kNone || !mask.is_contiguous() || mask.rank() < 1) return;
  if (spec->scores_output == ScoresOutput::kBiased || mask.count() == 0) return;
  const std::int64_t keys = mask.dims.back();
  const std::int64_t queries = mask.rank() > 1 ? mask.dims[mask.rank() - 2] : 1;
  if (keys != spec->key_len && keys != 1) return;
  const bool true_attends = spec->mask_polarity == MaskPolarity::kTrueAttends;
  const std::int64_t rows = mask.count() / keys;
  const std::int64_t first = visible_prefix(mask, 0, true_attends);
  bool all_visible = true;
  bool causal = first > 0 && keys == spec->key_len && queries == spec->query_len;
  for (std::int64_t r = 0; r < rows && (all_visible || causal); ++r) {
    const std::int64_t visible = visible_prefix(mask, r, true_attends);
    all_visible &= visible == keys;
    causal &= visible == std::min(first + r % queries, keys);
  }
  if (all_visible) {
    spec->mask = MaskKind::kNone;
    return;
  }
  const bool has_rules = spec->causal != Causal::kNone || spec->window.left >= 0 || spec->window.right >= 0;
  if (!causal || has_rules || spec->always_visible_keys != 0) return;
  const std::int64_t offset = first - 1;
  if (offset != 0 && offset != spec->key_len - spec->query_len) return;
  spec->causal = offset == 0 ? Causal::kTopLeft : Causal::kBottomRight;
  spec->mask = MaskKind::kNone;
}

}  // namespace headway
