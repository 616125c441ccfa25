// The sizes, and how many states a call may need at most.
#include "ops/cached_attention/geometry.h"

#include <algorithm>
#include <bit>

#include "ops/base/layout.h"

namespace headway {
namespace {

constexpr std::int64_t kTaskBytes = 192 << 10;  // panels of a task: well inside the second-level cache
// A tile of one vector is bound by loads: with 16 lanes 16 rows take 7.8 ms as few and 13 as a tile (8 key heads of
// 8192 keys, AVX-512); with 8 lanes neither is better.
constexpr std::int64_t kLeastFewRows = 8;
constexpr int kInvariantTiles = 2;  // each keeps a panel for every level of the tree

}  // namespace

CachedGeometry::CachedGeometry(const CachedAttentionSpec& spec, const AttentionTileKernels& kernels)
    : sharing(spec.num_heads / *spec.num_kv_heads),
      lanes(kernels.lanes),
      few_rows(std::clamp<std::int64_t>(kernels.lanes, kLeastFewRows, kMaxFewRows)),
      max_vectors(kernels.max_vectors),
      tile_lanes(std::int64_t{kernels.lanes} * kernels.max_vectors),
      min_split_keys(spec.batch_invariant ? kInvariantSpanKeys : kMinSplitKeys),
      span_keys(spec.batch_invariant ? kInvariantSpanKeys : 0) {
  const std::int64_t tile_bytes = 4 * tile_lanes * (spec.head_dim + *spec.value_head_dim);
  const int most = spec.batch_invariant ? kInvariantTiles : kMaxTiles;
  max_tiles = static_cast<int>(std::clamp<std::int64_t>(kTaskBytes / tile_bytes, 1, most));

  // Keys are split only where there are fewer than kEnoughTasks tasks otherwise, and no finer than makes twice as many.
  const std::int64_t splits = ceil_div(spec.max_cache, min_split_keys) + 1;
  const std::int64_t rows = spec.max_tokens * spec.num_heads;
  state_rows = std::min(2 * kEnoughTasks * std::max(tile_lanes, kMaxFewRows), rows * splits);
  fold_levels = spec.batch_invariant ? std::bit_width(static_cast<std::uint64_t>(spec.max_cache / span_keys)) + 1 : 0;
}

std::int64_t CachedGeometry::tiles(std::int64_t rows) const { return ceil_div(ceil_div(rows, lanes), max_vectors); }

TileRows CachedGeometry::tile(std::int64_t rows, std::int64_t index) const {
  // Full tiles first. One vector left over makes the last two tiles two vectors wide each: a register tile of one
  // vector is bound by loads.
  const std::int64_t row_vectors = ceil_div(rows, lanes);
  const std::int64_t count = ceil_div(row_vectors, max_vectors);
  std::int64_t vector = index * max_vectors;
  std::int64_t vectors = std::min<std::int64_t>(max_vectors, row_vectors - vector);
  if (row_vectors % max_vectors == 1 && max_vectors == 3 && count >= 2 && index >= count - 2) {
    vector = row_vectors - 2 * (count - index);
    vectors = 2;
  }
  const std::int64_t begin = vector * lanes;
  return {begin, std::min(vectors * lanes, rows - begin), static_cast<int>(vectors)};
}

}  // namespace headway
