// Reads masks of any broadcast, stride, kind and polarity as rows of f32 bias, in loops that vectorise where keys are
// contiguous. Knows neither causality nor windows, and no scores.
#include "ops/attention/bias.h"

#include <algorithm>

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"

namespace headway {
namespace {

/// The mask as [B, Hq, Sq, n] with stride 0 on every axis that broadcasts, the last one included.
ConstTensorView normalised_mask(const ConstTensorView& mask, const AttentionSpec& spec, std::int64_t keys) {
  const std::int64_t full[4] = {spec.batch, spec.num_heads, spec.query_len, keys};
  ConstTensorView result(mask.data, mask.type, Dims(full), Dims{0, 0, 0, 0});
  for (int axis = 0; axis < mask.rank(); ++axis) {
    if (mask.dims[axis] != 1) result.strides[4 - mask.rank() + axis] = mask.strides[axis];
  }
  return result;
}

/// Writes biases of one row; `load(j)` gives that of key j.
template <class Load>
void write_row(float* row, std::int64_t keys, Load load) {
  for (std::int64_t j = 0; j < keys; ++j) row[j] = load(j);
}

/// Adds a second bias: hidden by either is hidden, and two finite biases stay finite. By selection, so that the
/// compiler can blend.
template <class Load>
void add_row(float* row, std::int64_t keys, Load load) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const float a = row[j];
    const float b = load(j);
    const float sum = a + b;
    const float finite = sum == kHiddenScore ? kLowestScore : sum;
    row[j] = a == kHiddenScore || b == kHiddenScore ? kHiddenScore : finite;
  }
}

/// One row of one mask: `data` is its first key, `stride` elements lie between keys.
struct MaskRow {
  MaskKind kind;
  DataType type;
  bool true_attends;
  const std::byte* data;
  std::int64_t stride;
};

/// Calls `use(load)` with the loader that suits the row of numbers: the unit stride is spelled out so that it
/// vectorises.
template <class Real, class Use>
void with_numbers(const MaskRow& mask, Use use) {
  const std::int64_t stride = mask.stride;
  const auto* values = reinterpret_cast<const Real*>(mask.data);
  if (stride == 0) return use([value = widen(*values)](std::int64_t) { return value; });
  if (stride == 1) return use([values](std::int64_t j) { return widen(values[j]); });
  use([values, stride](std::int64_t j) { return widen(values[j * stride]); });
}

/// The same for a row of either kind of mask.
template <class Use>
void with_loader(const MaskRow& mask, Use use) {
  const std::int64_t stride = mask.stride;
  if (mask.kind == MaskKind::kAdditive) {
    if (mask.type == DataType::kBF16) return with_numbers<BFloat16>(mask, use);
    return with_numbers<float>(mask, use);
  }
  // Read as bytes: a bool that is neither 0 nor 1 would be undefined, and masks come from outside.
  const std::uint8_t* bits = reinterpret_cast<const std::uint8_t*>(mask.data);
  const float if_set = mask.true_attends ? 0.0f : kHiddenScore;
  const float if_clear = mask.true_attends ? kHiddenScore : 0.0f;
  if (stride == 0) return use([value = *bits != 0 ? if_set : if_clear](std::int64_t) { return value; });
  if (stride == 1) return use([=](std::int64_t j) { return bits[j] != 0 ? if_set : if_clear; });
  use([=](std::int64_t j) { return bits[j * stride] != 0 ? if_set : if_clear; });
}

}  // namespace

BiasSource::BiasSource(const AttentionSpec& spec, const AttentionArgs& args)
    : mask_kind_(spec.mask),
      key_mask_kind_(spec.key_mask),
      true_attends_(spec.mask_polarity == MaskPolarity::kTrueAttends),
      mask_keys_(0),
      tail_begin_(spec.key_len - spec.always_visible_keys) {
  if (mask_kind_ != MaskKind::kNone) {
    const std::int64_t n = args.mask.dims.back();
    mask_keys_ = n == 1 ? tail_begin_ : std::min(n, tail_begin_);
    mask_ = normalised_mask(args.mask, spec, mask_keys_);
  }
  if (key_mask_kind_ != MaskKind::kNone) key_mask_ = args.key_mask;
}

bool BiasSource::same_for_all_queries() const {
  return mask_kind_ == MaskKind::kNone || mask_.strides[2] == 0 || mask_.dims[2] <= 1;
}

bool BiasSource::in_place(std::int64_t key, std::int64_t keys) const {
  return mask_kind_ == MaskKind::kAdditive && mask_.type == DataType::kF32 && mask_.strides[3] == 1 &&
         key_mask_kind_ == MaskKind::kNone && key + keys <= mask_keys_;
}

const float* BiasSource::row(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t key) const {
  return reinterpret_cast<const float*>(mask_at(b, h, query, key));
}

const std::byte* BiasSource::mask_at(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t key) const {
  const Dims& s = mask_.strides;
  const std::int64_t at = b * s[0] + h * s[1] + query * s[2] + key * s[3];
  return mask_.data + at * static_cast<std::int64_t>(size_bytes(mask_.type));
}

void BiasSource::fill(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t rows, std::int64_t key,
                      std::int64_t keys, float* tile, std::int64_t ld) const {
  // [0, covered) is under both masks, [covered, masked) beyond a short mask, [masked, keys) is always visible.
  const std::int64_t masked = std::clamp(tail_begin_ - key, std::int64_t{0}, keys);
  const std::int64_t covered =
      mask_kind_ == MaskKind::kNone ? masked : std::clamp(mask_keys_ - key, std::int64_t{0}, masked);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = tile + r * ld;
    if (mask_kind_ == MaskKind::kNone || covered == 0) {
      std::fill(row, row + covered, 0.0f);
    } else {
      const MaskRow mask{mask_kind_, mask_.type, true_attends_, mask_at(b, h, query + r, key), mask_.strides[3]};
      with_loader(mask, [=](auto load) { write_row(row, covered, load); });
    }
    if (key_mask_kind_ != MaskKind::kNone && covered > 0) {
      const std::int64_t at = b * key_mask_.strides[0] + key * key_mask_.strides[1];
      const MaskRow mask{key_mask_kind_, key_mask_.type, true_attends_,
                         key_mask_.data + at * static_cast<std::int64_t>(size_bytes(key_mask_.type)),
                         key_mask_.strides[1]};
      with_loader(mask, [=](auto load) { add_row(row, covered, load); });
    }
    std::fill(row + covered, row + masked, kHiddenScore);
    std::fill(row + masked, row + keys, 0.0f);
  }
}

}  // namespace headway
