// Dispatch of the kernels for softmax states.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/softmax_state.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/softmax_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

SoftmaxStateKernels SoftmaxStateKernelsOfTarget() { return {.fold_row = &FoldRow, .fold_panel = &FoldPanel}; }

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(SoftmaxStateKernelsOfTarget);

SoftmaxStateKernels softmax_state_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(SoftmaxStateKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
