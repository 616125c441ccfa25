// Rows of a key/value cache and of projected heads: any float type to f32 and back, gathered by pointers; rotation of
// a head by its position. Knows neither caches nor positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// Rows from anywhere to rows of f32.
struct GatherRows {
  const std::byte* const* rows;  // [count]; innermost stride 1
  std::int64_t count;
  std::int64_t columns;
  float* to;               // [count, columns]
  std::int64_t to_stride;  // floats between its rows
};

/// x[0, 2n) rotated by the angles whose cosines and sines are given, in place. Of a pair (a, b):
/// (a·cos − b·sin, b·cos + a·sin).
struct RotateRow {
  float* x;
  const float* cos;  // [n]
  const float* sin;  // [n]
  std::int64_t n;    // pairs
};

/// Kernels of one float type in memory.
struct RowTypeKernels {
  void (*gather)(const GatherRows&);
  /// to[i] = from[i], exactly.
  void (*widen)(const std::byte* from, float* to, std::int64_t n);
  /// to[i] = factor · from[i], rounded to nearest even.
  void (*narrow)(const float* from, float factor, std::byte* to, std::int64_t n);
};

/// Kernels of one target, resolved once at plan time.
struct CacheRowKernels {
  RowTypeKernels f32, bf16, f16;
  void (*rotate_half)(const RotateRow&);         // pairs (i, i + n)
  void (*rotate_interleaved)(const RotateRow&);  // pairs (2i, 2i + 1)

  /// Of f32, bf16 or f16.
  const RowTypeKernels& of(DataType type) const {
    return type == DataType::kBF16 ? bf16 : type == DataType::kF16 ? f16 : f32;
  }
};

/// Of the current target (target.h).
CacheRowKernels cache_row_kernels();

}  // namespace headway
