// Dispatch of the conversions between bf16 and f32.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/bf16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/bf16-inl.h"
#include "ops/simd/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

Bf16Kernels Bf16KernelsOfTarget() {
  return {.target = hwy::TargetName(HWY_TARGET), .widen = &Widen, .narrow = &Narrow, .scale = &Scale};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(Bf16KernelsOfTarget);

Bf16Kernels bf16_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(Bf16KernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
