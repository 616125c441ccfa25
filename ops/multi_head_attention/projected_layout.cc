// Row-major heads with padded rows.
#include "ops/multi_head_attention/projected_layout.h"

#include "ops/base/layout.h"

namespace headway {
namespace {

constexpr std::int64_t kSetPeriodBytes = 1024;  // rows a multiple of it apart share a quarter of the sets, or fewer

}  // namespace

std::int64_t padded_row(std::int64_t width, DataType type) {
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(type));
  const std::int64_t line = kCacheLineBytes / element_bytes;
  const std::int64_t row = round_up(width, line) + line;
  return row * element_bytes % kSetPeriodBytes == 0 ? row + line : row;
}

ProjectedLayout decide_layout(const MultiHeadAttentionSpec& s, std::int64_t key_rows) {
  const std::int64_t q = s.num_heads * *s.head_dim;
  const std::int64_t k = *s.num_kv_heads * *s.head_dim;
  const std::int64_t v = *s.num_kv_heads * *s.value_head_dim;
  ProjectedLayout layout;
  layout.key_rows = key_rows;
  if (s.self_attention) {
    const std::int64_t row = padded_row(q + k + v, s.type);
    layout.query = {0, key_rows * row, *s.head_dim, row};
    layout.key = {q, key_rows * row, *s.head_dim, row};
    layout.value = {q + k, key_rows * row, *s.value_head_dim, row};
    layout.elements = s.batch * key_rows * row;
    return layout;
  }
  const std::int64_t q_row = padded_row(q, s.type);
  const std::int64_t k_row = padded_row(k, s.type);
  const std::int64_t v_row = padded_row(v, s.type);
  layout.query = {0, s.query_len * q_row, *s.head_dim, q_row};
  layout.key = {s.batch * s.query_len * q_row, key_rows * k_row, *s.head_dim, k_row};
  layout.value = {layout.key.offset + s.batch * key_rows * k_row, key_rows * v_row, *s.value_head_dim, v_row};
  layout.elements = layout.value.offset + s.batch * key_rows * v_row;
  return layout;
}

}  // namespace headway
