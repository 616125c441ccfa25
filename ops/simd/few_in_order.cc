// Dispatch of the kernels for few queries in the tiles' order.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/few_in_order.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/few_in_order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

FewInOrderKernels FewInOrderKernelsOfTarget() {
  return {.score = &ScoreInOrder,
          .softmax = &SoftmaxInOrder,
          .context = &ContextInOrder<float>,
          .context_bf16 = &ContextInOrder<BFloat16>,
          .context_f16 = &ContextInOrder<Float16>};
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
