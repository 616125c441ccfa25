// Clips blocks to what a tile sees; reads masks in place where they are f32 rows, else through rows of scratch.
#include "ops/attention/tiled/tile_keys.h"

#include <algorithm>

#include "ops/base/hidden_score.h"

namespace headway {

TileKeys tile_keys_of(const QueryTile& tile, const KeyBlock& block) {
  const TiledTask& task = tile.task();
  const LaneRows& rows = tile.rows();
  TileKeys keys{block.begin, block.end, block.end, {}};
  const int vectors = rows.tile.vectors;
  if (!block.always_visible) {
    keys.begin = std::max(keys.begin, rows.any.begin);
    // Values come in pairs of the block's keys: the other half of the first pair is hidden by its limit.
    if (task.geometry.pairs) keys.begin -= (keys.begin - block.begin) % 2;
    keys.end = std::max(keys.begin, std::min(keys.end, rows.any.end));
    // There is nothing to limit before the first key that some row does not see, unless a window begins in the block.
    keys.limited = rows.all.begin <= keys.begin ? std::clamp(rows.all.end, keys.begin, keys.end) : keys.begin;
    // Whole register tiles only.
    if (keys.limited < keys.end) keys.limited -= (keys.limited - keys.begin) % task.kernels.key_tile;
  }
  const bool whole = block.always_visible || task.spec.scores_output != ScoresOutput::kNone;
  for (int v = 0; v < 3; ++v) {
    const std::int64_t last = whole || v >= vectors - 1 ? keys.end : std::int64_t{rows.vector_last[v]};
    keys.vector_end[v] = std::clamp(last, keys.begin, keys.end) - keys.begin;
  }
  return keys;
}

TileBias load_bias(const QueryTile& tile, TileKeys* keys) {
  const TiledTask& task = tile.task();
  const QueryTileRows& rows = tile.rows().tile;
  const std::int64_t count = keys->end - keys->begin;
  const std::int64_t query_len = task.spec.query_len;
  float* const to = task.scratch.bias_rows;
  const QueryRow first = task.heads.row(rows.begin, query_len);
  if (task.bias.same_for_all_queries() && (task.geometry.heads_per_group == 1 || task.bias.same_for_all_heads())) {
    task.bias.fill(task.heads.batch, first.head, first.query, 1, keys->begin, count, to, count);
    std::int64_t live = count;
    while (live > 0 && to[live - 1] == kHiddenScore) --live;
    keys->end = keys->begin + live;
    keys->limited = std::min(keys->limited, keys->end);
    for (std::int64_t& end : keys->vector_end) end = std::min(end, live);
    return {.row = to, .panel = nullptr};
  }
  const bool in_place = task.bias.in_place(keys->begin, count);
  // Rows of one head at a time; lanes beyond the last row repeat it.
  for (std::int64_t row = 0; row < rows.rows && !in_place;) {
    const QueryRow at = task.heads.row(rows.begin + row, query_len);
    const std::int64_t head_rows = std::min(rows.rows - row, query_len - at.query);
    task.bias.fill(task.heads.batch, at.head, at.query, head_rows, keys->begin, count, to + row * count, count);
    row += head_rows;
  }
  const std::byte* lane_rows[kMaxTileLanes];
  const std::int64_t lanes = tile.lanes();
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t row = std::min(lane, rows.rows - 1);
    const QueryRow at = task.heads.row(rows.begin + row, query_len);
    const float* const mask =
        in_place ? task.bias.row(task.heads.batch, at.head, at.query, keys->begin) : to + row * count;
    lane_rows[lane] = reinterpret_cast<const std::byte*>(mask);
  }
  task.kernels.load({.rows = lane_rows,
                     .column_stride = 1,
                     .columns = count,
                     .scale = 1,
                     .vectors = rows.vectors,
                     .panel = task.scratch.bias});
  return {.row = nullptr, .panel = task.scratch.bias};
}

TileWork count_work(const QueryTile& tile, const TileKeys& keys, bool always_visible) {
  const TiledTask& task = tile.task();
  const LaneRows& rows = tile.rows();
  TileWork work;
  const bool all_see_all = always_visible || (rows.all.begin <= keys.begin && keys.end <= rows.all.end);
  if (all_see_all) work.pairs = rows.tile.rows * (keys.end - keys.begin);
  for (std::int64_t lane = 0; lane < rows.tile.rows && !all_see_all; ++lane) {
    const std::int64_t begin = std::max<std::int64_t>(keys.begin, rows.tables.first[lane]);
    const std::int64_t end = std::min<std::int64_t>(keys.end, rows.tables.end[lane]);
    work.pairs += std::max<std::int64_t>(end - begin, 0);
  }
  const int vectors = rows.tile.vectors;
  std::int64_t begin = 0;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t tile_rows = task.kernels.tile_rows[vectors - v - 1];
    const std::int64_t count = std::max<std::int64_t>(keys.vector_end[v] - begin, 0);
    work.score_pairs += keys_in_tiles(count, tile_rows) * (vectors - v) * task.geometry.lanes;
    work.prob_pairs += keys.vector_end[v] * task.geometry.lanes;
    begin = std::max(begin, keys.vector_end[v]);
  }
  return work;
}

}  // namespace headway
