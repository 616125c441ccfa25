// Dispatch of the normalisation kernels.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/norm-inl.h"
#include "ops/simd/norm.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

NormKernels NormKernelsOfTarget() { return {.layer_norm = &LayerNormRow, .rms_norm = &RmsNormRow, .sum = &SumRow}; }

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/base/wide_norm.h"
#include "ops/simd/target.h"

namespace headway {

NormMoments norm_row_in_double(const NormRow& row, bool rms) {
  const WideNormRow<float> wide{row.x, row.y, row.scale, row.bias, row.n, static_cast<double>(row.epsilon)};
  const WideMoments moments = wide_norm(wide, rms);
  return {static_cast<float>(moments.mean), static_cast<float>(moments.inverse_std)};
}

HWY_EXPORT(NormKernelsOfTarget);

NormKernels norm_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(NormKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
