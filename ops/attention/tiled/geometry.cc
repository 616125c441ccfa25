// The cuts and why they lie where they do.
#include "ops/attention/tiled/geometry.h"

#include <algorithm>
#include <sstream>

#include "ops/base/split_scale.h"

namespace headway {
namespace {

constexpr std::int64_t kKeyBlock = 128;  // 64 to 256 is a flat optimum: 128 × 48 scores are 24 KiB
// Longer with 16 lanes and 128 ≤ D ≤ 256: the panels of query and context pass through the first cache half as often
// (1 to 2 points of the peak; at D = 512 it costs 3).
constexpr std::int64_t kKeyBlockLong = 256;
constexpr int kNarrowLanes = 8;
constexpr std::int64_t kDepthBlock = 256;
constexpr std::int64_t kChunkBytes = 192 << 10;  // query and context panels of a chunk: well inside the second cache
constexpr std::int64_t kWantedTasks = 16;        // chunks shrink until there are so many: enough for 8 workers
// Less than this stays in the second-level cache from call to call, where asking ahead costs up to 5 points of the
// peak; beyond it gives up to 8 (AVX-512). With 8 lanes it never paid.
constexpr std::int64_t kCachedBytes = 4 << 20;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

TiledGeometry::TiledGeometry(const AttentionSpec& spec, const AttentionTileKernels& kernels, bool in_pairs)
    : lanes(kernels.lanes), group_lanes(kernels.lanes * kernels.max_vectors), max_vectors_(kernels.max_vectors) {
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
  if (!mean && spec.query_len < group_lanes) heads_per_unit = std::max<std::int64_t>(sharing, 1);
  rows = heads_per_unit * spec.query_len;
  row_vectors_ = ceil_div(rows, lanes);
  groups = ceil_div(row_vectors_, max_vectors_);

  const std::int64_t group_bytes = 4 * group_lanes * (spec.head_dim + *spec.value_head_dim);
  groups_per_chunk =
      std::clamp<std::int64_t>(kChunkBytes / std::max<std::int64_t>(group_bytes, 1), 1, kMaxGroupsPerChunk);
  const std::int64_t units = spec.batch * (mean ? 1 : spec.num_heads / heads_per_unit);
  if (scores_out) groups_per_chunk = 1;  // score rows are long; one group's are kept
  while (groups_per_chunk > 1 && units * ceil_div(groups, groups_per_chunk) < kWantedTasks) --groups_per_chunk;
  chunks = ceil_div(groups, groups_per_chunk);

  const std::int64_t width = std::max(spec.head_dim, *spec.value_head_dim);
  const bool narrow_lanes = lanes <= kNarrowLanes;
  const bool long_blocks = !narrow_lanes && 128 <= width && width <= 256;
  key_block = round_up(long_blocks ? kKeyBlockLong : kKeyBlock, kernels.key_tile);
  depth_block = kDepthBlock;
  pack_value = widen && *spec.value_head_dim >= 128;
  const std::int64_t columns = spec.head_dim + *spec.value_head_dim;
  const std::int64_t query_rows = spec.num_heads * spec.query_len, key_rows = *spec.num_kv_heads * spec.key_len;
  const std::int64_t elements = spec.batch * columns * (query_rows + key_rows);
  fetch = !narrow_lanes && elements * static_cast<std::int64_t>(size_bytes(spec.type)) > kCachedBytes;

  const bool masked = spec.mask != MaskKind::kNone || spec.key_mask != MaskKind::kNone;
  const std::int64_t value_columns = round_up(*spec.value_head_dim, kernels.value_columns);
  const auto floats = [](std::int64_t n) { return round_up(n, 16); };
  buffers_.queries = groups_per_chunk * floats(spec.head_dim * group_lanes);
  buffers_.context = groups_per_chunk * floats(*spec.value_head_dim * group_lanes);
  buffers_.scores = floats((key_block + 8) * group_lanes);
  buffers_.state = groups_per_chunk * 3 * floats(group_lanes) + 2 * floats(group_lanes);
  buffers_.key = floats(key_block * spec.head_dim);
  buffers_.value = floats(key_block * value_columns);
  buffers_.bias_rows = masked ? floats(group_lanes * key_block) : 0;
  buffers_.bias = masked ? floats(key_block * group_lanes) : 0;
  buffers_.score_rows = scores_out ? floats(group_lanes * spec.key_len) : 0;
  // Pointers to query, output and score rows, and two 32-bit limits, a lane.
  buffers_.tables = groups_per_chunk * (3 * floats(2 * group_lanes) + 2 * floats(group_lanes));
}

QueryGroup TiledGeometry::group(std::int64_t index) const {
  // Full groups first; a single vector left over is shared out as two groups of two, since a tile of one vector is
  // bound by loads.
  const std::int64_t rest = row_vectors_ % max_vectors_;
  std::int64_t vector = index * max_vectors_;
  std::int64_t vectors = std::min<std::int64_t>(max_vectors_, row_vectors_ - vector);
  if (rest == 1 && max_vectors_ == 3 && groups >= 2 && index >= groups - 2) {
    vector = row_vectors_ - 2 * (groups - index);
    vectors = 2;
  }
  const std::int64_t begin = vector * lanes;
  return {begin, std::min(vectors * lanes, rows - begin), static_cast<int>(vectors)};
}

std::string TiledGeometry::explain(const AttentionTileKernels& kernels) const {
  std::ostringstream text;
  text << kernels.target << ", groups of " << group_lanes << " queries, " << groups_per_chunk << " a task, blocks of "
       << key_block << " keys, "
       << (widen   ? "key and value widened a block"
           : pairs ? "products of bf16 pairs, value packed a block"
                   : "key and value read in place")
       << (fetch ? ", memory asked for ahead" : "") << ", workspace " << buffers_.total() * 4 << " bytes a worker";
  return text.str();
}

}  // namespace headway
