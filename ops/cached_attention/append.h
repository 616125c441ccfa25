// What appending to a cache checks, apart from what it does: shapes and values of its arguments.
#pragma once

#include <cstdint>

#include "headway/kv_cache.h"

namespace headway {

/// Rows are normalised and rotated on the stack.
inline constexpr std::int64_t kMaxHeadDim = 2048;

/// Sizes of a call of append().
struct AppendSizes {
  std::int64_t tokens;
  std::int64_t batch;
};
/// Throws kInvalidArgument naming the argument and both numbers. Reads starts, lengths, tables, mapping and positions.
AppendSizes check_append(const AppendArgs& args, const KvCache& cache);

/// Of a [n] tensor of i32 or i64.
inline std::int64_t wide_integer_at(const ConstTensorView& view, std::int64_t index) {
  const std::int64_t at = index * view.strides[0];
  if (view.type == DataType::kI64) return reinterpret_cast<const std::int64_t*>(view.data)[at];
  return reinterpret_cast<const std::int32_t*>(view.data)[at];
}

}  // namespace headway
