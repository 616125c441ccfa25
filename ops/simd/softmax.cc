// Dispatch of the row kernels.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/softmax-inl.h"
#include "ops/simd/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

SoftmaxKernels SoftmaxKernelsOfTarget() {
  return {.softmax_row = &SoftmaxRow,
          .normalize_row = &NormalizeRow,
          .log_sum_exp = &LogSumExpRows,
          .exp = &ExpRow,
          .softcap_row = &SoftcapRow,
          .row_max = &RowMax,
          .exp_to_bf16 = &ExpRowToBf16};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(SoftmaxKernelsOfTarget);

SoftmaxKernels softmax_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(SoftmaxKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
