// Dispatch of the attention tile kernels.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd/attention_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/attention_tile-inl.h"
#include "ops/simd/panel-inl.h"
#include "ops/simd/score_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

AttentionTileKernels AttentionTileKernelsOfTarget() {
  return {.target = hwy::TargetName(HWY_TARGET),
          .lanes = static_cast<int>(hn::Lanes(TileTag())),
          .max_vectors = kTileVectors,
          .tile_rows = {TileRows(1), TileRows(2), TileRows(3)},
          .key_tile = kKeyTile,
          .value_columns = kValueColumns,
          .load = &Load<float>,
          .load_bf16 = &Load<BFloat16>,
          .score = &Score<F32Product>,
          .adjust = &Adjust,
          .softmax = &Softmax,
          .context = &Context<F32Product>,
          .store = &Store<float>,
          .store_bf16 = &Store<BFloat16>,
          .widen = &WidenAll};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/simd/target.h"

namespace headway {
HWY_EXPORT(AttentionTileKernelsOfTarget);

AttentionTileKernels attention_tile_kernels() {
  apply_simd_environment();
  return HWY_DYNAMIC_DISPATCH(AttentionTileKernelsOfTarget)();
}

}  // namespace headway
#endif  // HWY_ONCE
