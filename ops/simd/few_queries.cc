// Dispatch of the kernels for few queries.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/few_queries.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/few_queries-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

FewQueriesKernels FewQueriesKernelsOfTarget() {
  return {.target = hwy::TargetName(HWY_TARGET),
          .score = &ScoreFew<FewScores<float>>,
          .score_bf16 = &ScoreFew<FewScores<BFloat16>>,
          .softmax = &SoftmaxFew,
          .context = &ContextFew<FewContext<float>>,
          .context_bf16 = &ContextFew<FewContext<BFloat16>>};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(FewQueriesKernelsOfTarget);

FewQueriesKernels few_queries_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(FewQueriesKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
