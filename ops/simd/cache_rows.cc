// Dispatch of the kernels for cache rows.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/cache_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/cache_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

template <class Real>
RowTypeKernels RowTypeKernelsOf() {
  return {.gather = &Gather<Real>, .widen = &WidenRow<Real>, .narrow = &NarrowRow<Real>};
}

CacheRowKernels CacheRowKernelsOfTarget() {
  return {.f32 = RowTypeKernelsOf<float>(),
          .bf16 = RowTypeKernelsOf<BFloat16>(),
          .f16 = RowTypeKernelsOf<Float16>(),
          .rotate_half = &RotateHalf,
          .rotate_interleaved = &RotateInterleaved};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(CacheRowKernelsOfTarget);

CacheRowKernels cache_row_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(CacheRowKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
