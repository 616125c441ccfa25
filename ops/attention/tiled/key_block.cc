// What is packed and when. Values in bf16 always are, and keys in bf16 unless they are multiplied in pairs: widening or
// pairing them once per block costs little next to the products of the query tiles that share the block.
#include "ops/attention/tiled/key_block.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/base/layout.h"
#include "ops/base/numeric.h"

namespace headway {
namespace {

/// Rows of memory, any strides, in elements.
template <class Real>
struct Rows {
  const Real* from;
  std::int64_t row_stride;
  std::int64_t column_stride;
  std::int64_t rows;
  std::int64_t columns;
};

template <class Real>
Rows<Real> rows_of(const TiledTask& task, const ConstTensorView& view, const KeyRange& keys) {
  const Dims& s = view.strides;
  const std::int64_t kv_head = task.heads.first_head / (task.spec.num_heads / *task.spec.num_kv_heads);
  const std::int64_t at = task.heads.batch * s[0] + kv_head * s[1] + keys.begin * s[2];
  return {view.as<Real>() + at, s[2], s[3], keys.end - keys.begin, view.dims[3]};
}

/// Dense rows [rows, columns], widened unless they keep their type.
template <class Real, class To>
void pack_rows(const Rows<Real>& r, To* to) {
  for (std::int64_t i = 0; i < r.rows; ++i) {
    for (std::int64_t c = 0; c < r.columns; ++c) {
      to[i * r.columns + c] = convert<To>(r.from[i * r.row_stride + c * r.column_stride]);
    }
  }
}

/// Column panels [columns / kWidth][rows][kWidth].
template <std::int64_t kWidth, class Real>
void pack_panels_of(const Rows<Real>& r, float* to) {
  for (std::int64_t i = 0; i < r.rows; ++i, to += kWidth) {
    const Real* from = r.from + i * r.row_stride;
    float* at = to;
    std::int64_t c = 0;
    if constexpr (std::is_same_v<Real, float>) {
      if (r.column_stride == 1) {
        for (; c + kWidth <= r.columns; c += kWidth, at += r.rows * kWidth) std::copy_n(from + c, kWidth, at);
      }
    }
    for (; c < r.columns; c += kWidth, at += r.rows * kWidth) {
      for (std::int64_t k = 0; k < std::min(kWidth, r.columns - c); ++k) at[k] = widen(from[(c + k) * r.column_stride]);
    }
  }
}

template <class Real>
void pack_panels(const Rows<Real>& r, std::int64_t width, float* to) {
  if (width == 8) return pack_panels_of<8>(r, to);
  return pack_panels_of<24>(r, to);
}

/// Rows of pairs: in place unless a pair is not contiguous or not aligned as a float.
void read_key_pairs(const Rows<BFloat16>& rows, float* scratch, KeyBlock* block) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(rows.from) % alignof(float) == 0;
  const bool in_place = rows.column_stride == 1 && rows.row_stride % 2 == 0 && aligned;
  if (!in_place) pack_rows(rows, reinterpret_cast<BFloat16*>(scratch));
  block->key = in_place ? reinterpret_cast<const float*>(rows.from) : scratch;
  block->key_stride = (in_place ? rows.row_stride : rows.columns) / 2;
}

void read_keys(const TiledTask& task, const KeyRange& keys, KeyBlock* block) {
  const ConstTensorView& key = task.args.key;
  block->key = task.scratch.key;
  block->key_stride = task.spec.head_dim;
  if (task.geometry.pairs) return read_key_pairs(rows_of<BFloat16>(task, key, keys), task.scratch.key, block);
  if (task.geometry.widen) {
    const Rows<BFloat16> rows = rows_of<BFloat16>(task, key, keys);
    if (rows.column_stride != 1) return pack_rows(rows, task.scratch.key);
    return task.kernels.widen({rows.from, rows.row_stride, rows.rows, rows.columns, 0, task.scratch.key});
  }
  const Rows<float> rows = rows_of<float>(task, key, keys);
  if (rows.column_stride != 1) return pack_rows(rows, task.scratch.key);
  block->key = rows.from;
  block->key_stride = rows.row_stride;
}

void read_values(const TiledTask& task, const KeyRange& keys, KeyBlock* block) {
  const ConstTensorView& value = task.args.value;
  const std::int64_t width = task.kernels.value_columns;
  block->value = task.scratch.value;
  block->value_stride = value.strides[2];
  block->panel_columns = width;
  block->panel_stride = (keys.end - keys.begin) * width;
  if (task.geometry.pairs) {
    const Rows<BFloat16> rows = rows_of<BFloat16>(task, value, keys);
    block->panel_stride = ceil_div(rows.rows, 2) * width;
    return task.pair_rows(
        {rows.from, rows.row_stride, rows.column_stride, rows.rows, rows.columns, task.scratch.value});
  }
  if (task.geometry.widen) {
    const Rows<BFloat16> rows = rows_of<BFloat16>(task, value, keys);
    if (rows.column_stride != 1) return pack_panels(rows, width, task.scratch.value);
    if (!task.geometry.pack_value) {
      block->value_stride = rows.columns;
      block->panel_columns = block->panel_stride = 0;
    }
    return task.kernels.widen(
        {rows.from, rows.row_stride, rows.rows, rows.columns, block->panel_columns, task.scratch.value});
  }
  const Rows<float> rows = rows_of<float>(task, value, keys);
  if (rows.column_stride != 1 || task.geometry.pack_value) return pack_panels(rows, width, task.scratch.value);
  block->value = rows.from;
  block->panel_columns = block->panel_stride = 0;
}

}  // namespace

KeyBlock read_keys_and_values(const TiledTask& task, const KeyRange& keys, bool always_visible) {
  KeyBlock block = read_keys_only(task, keys);
  block.always_visible = always_visible;
  read_values(task, keys, &block);
  return block;
}

KeyBlock read_keys_only(const TiledTask& task, const KeyRange& keys) {
  KeyBlock block{};
  block.begin = keys.begin;
  block.end = keys.end;
  read_keys(task, keys, &block);
  return block;
}

}  // namespace headway
