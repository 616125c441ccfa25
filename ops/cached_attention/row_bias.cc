// Loops over keys with unit stride where the argument allows it, so that they vectorise.
#include "ops/cached_attention/row_bias.h"

#include <algorithm>
#include <cmath>

#include "ops/base/hidden_score.h"

namespace headway {
namespace {

/// Hidden by either is hidden, and two finite biases stay finite.
float add_bias(float a, float b) {
  const float sum = a + b;
  const bool hidden = a == kHiddenScore || b == kHiddenScore;
  return hidden ? kHiddenScore : sum == kHiddenScore ? kLowestScore : sum;
}

float float_at(const ConstTensorView& view, std::int64_t offset) {
  return reinterpret_cast<const float*>(view.data)[offset];
}

}  // namespace

void RowBias::fill(const Sequence& sequence, std::int64_t token, std::int64_t head, std::int64_t key,
                   std::int64_t count, float* row) const {
  std::fill_n(row, count, 0.0f);
  const std::int64_t position = sequence.position(token);
  if (args_.alibi_slopes) {
    const float slope = float_at(args_.alibi_slopes, head * args_.alibi_slopes.strides[0]);
    const auto distance = static_cast<std::int32_t>(position - key);
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(count); ++j) {
      row[j] = -slope * std::fabs(static_cast<float>(distance - j));
    }
  }
  if (args_.relative_bias) add_distances(position, head, key, count, row);
  if (args_.mask) add_mask(sequence, token, key, count, row);
}

void RowBias::add_distances(std::int64_t position, std::int64_t head, std::int64_t key, std::int64_t count,
                            float* row) const {
  const ConstTensorView& table = args_.relative_bias;
  const float* const column = reinterpret_cast<const float*>(table.data) + head * table.strides[1];
  const std::int64_t last = table.dims[0] - 1;
  const std::int64_t first = position - key + args_.relative_bias_future;  // table row of the first key
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t at = std::clamp<std::int64_t>(first - j, 0, last);
    row[j] = add_bias(row[j], column[at * table.strides[0]]);
  }
}

void RowBias::add_mask(const Sequence& sequence, std::int64_t token, std::int64_t key, std::int64_t count,
                       float* row) const {
  const ConstTensorView& mask = args_.mask;
  const std::int64_t start = args_.mask_starts ? integer_at(args_.mask_starts, sequence.index) : 0;
  const std::int64_t width = mask.type == DataType::kU8 ? 8 * mask.dims[1] : mask.dims[1];
  // Keys [begin, end) of the row are under the mask; those before are not masked, those from `end` on hidden.
  const std::int64_t begin = std::clamp<std::int64_t>(start - key, 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(start + width - key, begin, count);
  const std::int64_t offset = (sequence.first_token + token) * mask.strides[0];
  const std::int64_t stride = mask.strides[1];
  const std::int64_t first = key - start;  // mask column of the row's first key
  if (mask.type == DataType::kF32) {
    const float* const values = reinterpret_cast<const float*>(mask.data) + offset;
    for (std::int64_t j = begin; j < end; ++j) row[j] = add_bias(row[j], values[(first + j) * stride]);
  } else if (mask.type == DataType::kBool) {
    // Read as bytes: a bool that is neither 0 nor 1 would be undefined, and masks come from outside.
    const auto* const flags = reinterpret_cast<const std::uint8_t*>(mask.data) + offset;
    for (std::int64_t j = begin; j < end; ++j) row[j] = flags[(first + j) * stride] != 0 ? row[j] : kHiddenScore;
  } else {
    const auto* const bits = reinterpret_cast<const std::uint8_t*>(mask.data) + offset;
    for (std::int64_t j = begin; j < end; ++j) {
      const std::int64_t column = first + j;
      row[j] = (bits[column / 8 * stride] >> (column % 8) & 1) != 0 ? row[j] : kHiddenScore;
    }
  }
  std::fill(row + end, row + count, kHiddenScore);
}

}  // namespace headway
