// Dispatch of the kernels for few queries over rows with addresses of their own.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/few_pointed_queries.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/few_queries-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

template <class Real>
FewPointedKernels<Real> FewPointedKernelsOf() {
  return {.score = &ScoreFew<FewPointedScores<Real>>, .context = &ContextFew<FewPointedContext<Real>>};
}

FewPointedQueriesKernels FewPointedQueriesKernelsOfTarget() {
  return {.f32 = FewPointedKernelsOf<float>(),
          .bf16 = FewPointedKernelsOf<BFloat16>(),
          .f16 = FewPointedKernelsOf<Float16>()};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(FewPointedQueriesKernelsOfTarget);

FewPointedQueriesKernels few_pointed_queries_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(FewPointedQueriesKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
