// Dispatch of the kernels for few queries in the tiles' order.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/few_in_order.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/few_in_order-inl.h"
#include "ops/simd/ordered_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

template <class Real>
FewInOrderOf<Real> FewInOrderOfType() {
  return {.score = &ScoreInOrder<Real>, .context = &ContextInOrder<Real>};
}

FewInOrderKernels FewInOrderKernelsOfTarget() {
  return {.softmax = &SoftmaxInOrder,
          .f32 = FewInOrderOfType<float>(),
          .bf16 = FewInOrderOfType<BFloat16>(),
          .f16 = FewInOrderOfType<Float16>()};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(FewInOrderKernelsOfTarget);

FewInOrderKernels few_in_order_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(FewInOrderKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
