// Dispatch of the elementwise kernels.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/elementwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/elementwise-inl.h"
#include "ops/simd/elementwise.h"
#include "ops/simd/gated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

ElementwiseKernels ElementwiseKernelsOfTarget() {
  return {.add = &AddRow,
          .sub = &SubRow,
          .mul = &MulRow,
          .div = &DivRow,
          .exp = &ExpOfRow,
          .tanh = &TanhOfRow,
          .sigmoid = &SigmoidOfRow,
          .erf = &ErfOfRow,
          .gelu = &GeluOfRow,
          .gelu_tanh = &GeluTanhOfRow,
          .silu = &SiluOfRow,
          .sqrt = &SqrtOfRow,
          .reciprocal = &ReciprocalOfRow,
          .relu = &ReluOfRow};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(ElementwiseKernelsOfTarget);

ElementwiseKernels elementwise_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(ElementwiseKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
