// The packed GEMM: y[M, N] = x[M, K]·Wᵀ + bias with W packed into column panels, on the same register tile as
// attention. Packs, and multiplies a block on the calling thread; knows no tasks.
#pragma once

#include <cstdint>

#include "headway/tensor.h"
#include "ops/base/layout.h"

namespace headway {

/// Products that are summed in registers before they are added to the sum so far.
inline constexpr std::int64_t kGemmDepthBlock = 128;

/// Depth of a slice, which stays in the second-level cache: with 192 rows and a panel of 64 columns it is 1 MB. A
/// multiple of kGemmDepthBlock, so that the sums are the same.
inline constexpr std::int64_t kGemmSlice = 1024;

/// Rows of a register tile, at most.
inline constexpr std::int64_t kGemmRows = 6;

/// One block of a product. Weights are stored as W, x and y as X, f32 or bf16 each; bias and all sums are f32.
template <class W, class X = W>
struct PackedGemmOf {
  const X* x;  // [rows, depth], innermost stride 1
  std::int64_t x_stride;
  std::int64_t rows;
  std::int64_t depth;
  const W* weight;  // packed: panels of [depth, panel width]
  std::int64_t columns;
  const float* bias;  // [columns rounded up to a vector], or null
  X* y;               // [rows, columns]
  std::int64_t y_stride;
  float* scratch = nullptr;  // bf16 weights: packed_gemm_scratch_floats(), 64-byte aligned
};
using PackedGemm = PackedGemmOf<float>;
using PackedGemmBf16 = PackedGemmOf<BFloat16>;
using PackedGemmBf16Weights = PackedGemmOf<BFloat16, float>;

/// Kernels of one target, resolved once at plan time.
struct PackedGemmKernels {
  const char* target;
  int lanes;
  int panel_columns;  // of a full panel; the last panel is as many vectors as it needs
  int row_block;      // rows of which a slice stays in the second-level cache, a multiple of kGemmRows
  /// Sums of 128 products are added up in turn: the error grows with √128 + K/128 rather than with √K, at no cost that
  /// could be measured.
  void (*multiply)(const PackedGemm&);
  /// The same sums in the same order, of widened operands; y is rounded once.
  void (*multiply_bf16)(const PackedGemmBf16&);
  void (*multiply_bf16_weights)(const PackedGemmBf16Weights&);
};

/// Of the current target (target.h).
PackedGemmKernels packed_gemm_kernels();

/// Elements that `columns` columns of depth `depth` take when packed: a block may start at any multiple of
/// panel_columns, `first · depth` elements in.
std::int64_t packed_gemm_elements(const PackedGemmKernels& kernels, std::int64_t columns, std::int64_t depth);
/// Scratch of a product with bf16 weights, of up to `rows` × `columns`, whatever the depth.
std::int64_t packed_gemm_scratch_floats(const PackedGemmKernels& kernels, std::int64_t rows, std::int64_t columns);
/// Packs `weight` [N, K], of the type of `to`, any strides. `to` is 64-byte aligned.
void pack_gemm_weight(const PackedGemmKernels& kernels, const ConstTensorView& weight, float* to);
void pack_gemm_weight(const PackedGemmKernels& kernels, const ConstTensorView& weight, BFloat16* to);

}  // namespace headway
