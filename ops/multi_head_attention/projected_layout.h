// Where the projected heads and the context lie in the workspace. Decides strides; computes nothing.
#pragma once

#include <cstdint>

#include "headway/multi_head_attention.h"

namespace headway {

/// One projected operand as the core sees it, [B, H, S, D], in elements from the start of the projected region.
struct ProjectedOperand {
  std::int64_t offset = 0;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
};

struct ProjectedLayout {
  ProjectedOperand query, key, value;
  std::int64_t key_rows = 0;  ///< of a batch entry, the appended ones too
  std::int64_t elements = 0;  ///< of the whole region
};

/// Stride between rows of `width` elements in the workspace: whole cache lines and one more, so that rows do not fall
/// into the same few cache sets. Rows of 3072 floats cost 15 to 30 % of the core at head widths up to 64; one more line
/// avoids nearly all of that.
std::int64_t padded_row(std::int64_t width, DataType type = DataType::kF32);

/// Decides the layout for `key_rows` keys per batch entry, the appended ones too. Row-major over the heads: one row per
/// token, its heads contiguous, as the projection writes it. In self attention query, key and value share their rows,
/// since one product writes all three. A head-major copy for narrow heads would be decided here: other strides, and a
/// copy between projection and core.
ProjectedLayout decide_layout(const MultiHeadAttentionSpec& completed, std::int64_t key_rows);

}  // namespace headway
