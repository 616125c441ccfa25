// y[M, N] = x[M, K]·W^T + bias with W packed into column panels, on the same register tile as attention. Packs, and
// multiplies a block on the calling thread; knows no tasks and no other way to multiply.
#pragma once

#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// One block of a product.
struct PackedGemm {
  const float* x;  // [rows, depth], innermost stride 1
  std::int64_t x_stride;
  std::int64_t rows;
  std::int64_t depth;
  const float* weight;  // packed: panels of [depth, panel width]
  std::int64_t columns;
  const float* bias;  // [columns rounded up to a vector], or null
  float* y;           // [rows, columns]
  std::int64_t y_stride;
};

/// Kernels of one target, resolved once at plan time.
struct PackedGemmKernels {
  const char* target;
  int lanes;
  int panel_columns;  // of a full panel; the last panel is as many vectors as it needs
  /// Sums of 128 products are added up in turn: the error grows with √128 + K/128 rather than with √K, for 2 % of time.
  void (*multiply)(const PackedGemm&);
};

/// Of the current target (target.h).
PackedGemmKernels packed_gemm_kernels();

/// Floats that `columns` columns of depth `depth` take when packed: a block may start at any multiple of
/// panel_columns, `first · depth` floats in.
std::int64_t packed_gemm_floats(const PackedGemmKernels& kernels, std::int64_t columns, std::int64_t depth);
/// Packs `weight` [N, K], any strides. `to` is 64-byte aligned.
void pack_gemm_weight(const PackedGemmKernels& kernels, const ConstTensorView& weight, float* to);

}  // namespace headway
