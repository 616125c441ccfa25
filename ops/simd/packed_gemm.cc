// Packing of weights, and dispatch of the packed GEMM.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/packed_gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/packed_gemm-inl.h"
#include "ops/simd/packed_gemm_bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

PackedGemmKernels PackedGemmKernelsOfTarget() {
  const int lanes = static_cast<int>(hn::Lanes(TileTag()));
  return {.target = hwy::TargetName(HWY_TARGET),
          .lanes = lanes,
          .panel_columns = kGemmVectors * lanes,
          .row_block = kHas32Registers ? 192 : 96,
          .multiply = &MultiplyPacked,
          .multiply_bf16 = &MultiplyPackedBf16<BFloat16>,
          .multiply_bf16_weights = &MultiplyPackedBf16<float>};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(PackedGemmKernelsOfTarget);

PackedGemmKernels packed_gemm_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(PackedGemmKernelsOfTarget)();
}

namespace {

template <class T>
void pack(const PackedGemmKernels& kernels, const ConstTensorView& weight, T* to) {
  const T* from = weight.as<T>();
  const std::int64_t columns = weight.dims[0];
  const std::int64_t depth = weight.dims[1];
  for (std::int64_t column = 0; column < columns; column += kernels.panel_columns) {
    const std::int64_t left = round_up(columns - column, kernels.lanes);
    const std::int64_t width = std::min<std::int64_t>(left, kernels.panel_columns);
    for (std::int64_t k = 0; k < depth; ++k, to += width) {
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t c = column + i;
        to[i] = c < columns ? from[c * weight.strides[0] + k * weight.strides[1]] : T{};
      }
    }
  }
}

}  // namespace

std::int64_t packed_gemm_elements(const PackedGemmKernels& kernels, std::int64_t columns, std::int64_t depth) {
  return round_up(columns, kernels.lanes) * depth;
}

std::int64_t packed_gemm_scratch_floats(const PackedGemmKernels& kernels, std::int64_t rows, std::int64_t columns) {
  const std::int64_t padded_rows = round_up(rows, kGemmRows);
  const std::int64_t sums = packed_gemm_elements(kernels, columns, padded_rows);
  return kGemmDepthBlock * (kernels.panel_columns + padded_rows) + sums;
}

void pack_gemm_weight(const PackedGemmKernels& kernels, const ConstTensorView& weight, float* to) {
  pack(kernels, weight, to);
}

void pack_gemm_weight(const PackedGemmKernels& kernels, const ConstTensorView& weight, BFloat16* to) {
  pack(kernels, weight, to);
}

}  // namespace headway
#endif  // HWY_ONCE
