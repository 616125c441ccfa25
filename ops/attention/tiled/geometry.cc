// The sizes of tiles, tasks and blocks, with the measurements behind them.
#include "ops/attention/tiled/geometry.h"

#include <algorithm>

#include "ops/base/layout.h"
#include "ops/base/split_scale.h"
#include "runtime/base/text_stream.h"

namespace headway {
namespace {

constexpr std::int64_t kKeyBlock = 128;  // 64 to 256 is a flat optimum: 128 × 48 scores are 24 KiB
// Longer with 16 lanes and 128 ≤ D ≤ 256: the panels of query and context pass through the first-level cache half as
// often (1 to 2 points of the peak; at D = 512 it costs 3).
constexpr std::int64_t kKeyBlockLong = 256;
constexpr int kNarrowLanes = 8;
constexpr std::int64_t kDepthBlock = 256;
constexpr std::int64_t kTaskBytes =
    192 << 10;                             // query and context panels of a task: well inside the second-level cache
constexpr std::int64_t kEnoughTasks = 16;  // tasks shrink until there are so many: enough for 8 workers
// Less than this stays in the second-level cache from call to call, where prefetching costs up to 5 points of the peak;
// beyond it, it gains up to 8 (AVX-512). With 8 lanes it never paid.
constexpr std::int64_t kCachedBytes = 4 << 20;

}  // namespace

TiledGeometry::TiledGeometry(const AttentionSpec& spec, const AttentionTileKernels& kernels, bool in_pairs)
    : lanes(kernels.lanes), tile_lanes(kernels.lanes * kernels.max_vectors), max_vectors_(kernels.max_vectors) {
  const bool scores_out = spec.scores_output != ScoresOutput::kNone;
  pairs = in_pairs;
  widen = spec.type == DataType::kBF16 && !pairs;
  depth = pairs ? spec.head_dim / 2 : spec.head_dim;
  query_scale = *spec.scale;
  if (pairs) {
    const SplitScale split = split_scale(*spec.scale);
    query_scale = split.power;
    score_scale = split.rest;
  }
  const bool mean = spec.scores_output == ScoresOutput::kMeanProbabilities;
  const std::int64_t sharing = *spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads : 1;
  if (!mean && spec.query_len < tile_lanes) heads_per_group = std::max<std::int64_t>(sharing, 1);
  rows = heads_per_group * spec.query_len;
  row_vectors_ = ceil_div(rows, lanes);
  tiles = ceil_div(row_vectors_, max_vectors_);

  const std::int64_t tile_bytes = 4 * tile_lanes * (spec.head_dim + *spec.value_head_dim);
  tiles_per_task = std::clamp<std::int64_t>(kTaskBytes / std::max<std::int64_t>(tile_bytes, 1), 1, kMaxTilesPerTask);
  const std::int64_t head_groups = spec.batch * (mean ? 1 : spec.num_heads / heads_per_group);
  if (scores_out) tiles_per_task = 1;  // score rows are long: keep those of one tile
  while (tiles_per_task > 1 && head_groups * ceil_div(tiles, tiles_per_task) < kEnoughTasks) --tiles_per_task;
  tasks = ceil_div(tiles, tiles_per_task);

  const std::int64_t width = std::max(spec.head_dim, *spec.value_head_dim);
  const bool narrow_lanes = lanes <= kNarrowLanes;
  const bool long_blocks = !narrow_lanes && 128 <= width && width <= 256;
  key_block = round_up(long_blocks ? kKeyBlockLong : kKeyBlock, kernels.key_tile);
  depth_block = kDepthBlock;
  pack_value = widen && *spec.value_head_dim >= 128;
  const std::int64_t columns = spec.head_dim + *spec.value_head_dim;
  const std::int64_t query_rows = spec.num_heads * spec.query_len, key_rows = *spec.num_kv_heads * spec.key_len;
  const std::int64_t elements = spec.batch * columns * (query_rows + key_rows);
  prefetch = !narrow_lanes && elements * static_cast<std::int64_t>(size_bytes(spec.type)) > kCachedBytes;
}

QueryTileRows TiledGeometry::tile(std::int64_t index) const {
  // Full tiles first. One vector left over makes the last two tiles two vectors wide each: a register tile of one
  // vector is bound by loads.
  const std::int64_t rest = row_vectors_ % max_vectors_;
  std::int64_t vector = index * max_vectors_;
  std::int64_t vectors = std::min<std::int64_t>(max_vectors_, row_vectors_ - vector);
  if (rest == 1 && max_vectors_ == 3 && tiles >= 2 && index >= tiles - 2) {
    vector = row_vectors_ - 2 * (tiles - index);
    vectors = 2;
  }
  const std::int64_t begin = vector * lanes;
  return {begin, std::min(vectors * lanes, rows - begin), static_cast<int>(vectors)};
}

std::string TiledGeometry::explain(const AttentionTileKernels& kernels, std::size_t worker_bytes) const {
  TextStream text;
  text << kernels.target << ", tiles of " << tile_lanes << " queries, " << tiles_per_task << " per task, blocks of "
       << key_block << " keys, "
       << (widen   ? "key and value widened per block"
           : pairs ? "products of bf16 pairs, value packed per block"
                   : "key and value read in place")
       << (prefetch ? ", prefetching" : "") << ", workspace " << worker_bytes << " bytes per worker";
  return text.str();
}

}  // namespace headway
