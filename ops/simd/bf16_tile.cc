// Dispatch of the steps on pairs of bf16: a target that could, on a CPU that can.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/bf16_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/attention_tile-inl.h"
#include "ops/simd/bf16_tile-inl.h"
#include "ops/simd/score_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

Bf16TileKernels Bf16TileKernelsOfTarget() {
#if HEADWAY_HAS_BF16_PRODUCT
  return {.load = &LoadPairs,
          .score = &Score<Bf16Product>,
          .softmax = &SoftmaxPairs,
          .context = &Context<Bf16Product>,
          .pair_rows = &PairAllRows};
#else
  return {};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(Bf16TileKernelsOfTarget);

Bf16TileKernels bf16_tile_kernels() {
  apply_simd_environment();
  if (!cpu_has_bf16_products()) return {};
  return HWY_DYNAMIC_DISPATCH(Bf16TileKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
