// One group against one block of keys: scores, masks, softmax, context.
#include "ops/attention/tiled/block.h"

#include <algorithm>
#include <limits>

#include "ops/attention/implementation.h"
#include "ops/attention/tiled/prefetch.h"
#include "ops/attention/tiled/scores.h"

namespace headway {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// Part of a block that one group works on: keys [begin, end), of which those from `limited` on are not seen by all.
struct Part {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t limited;
  std::int64_t vector_end[3];  // counted from begin
};

Part part_of(const TiledTask& task, const GroupRows& rows, const KeyBlock& block) {
  Part part{block.begin, block.end, block.end, {}};
  const int vectors = rows.group.vectors;
  if (!block.tail) {
    part.begin = std::max(part.begin, rows.any.begin);
    // Values come in pairs of the block's keys; the one before the window is hidden as any other.
    if (task.geometry.pairs) part.begin -= (part.begin - block.begin) % 2;
    part.end = std::max(part.begin, std::min(part.end, rows.any.end));
    // Up to the end of what all see there is nothing to limit, unless the window's beginning lies in the block.
    part.limited = rows.all.begin <= part.begin ? std::clamp(rows.all.end, part.begin, part.end) : part.begin;
    if (part.limited < part.end) part.limited -= (part.limited - part.begin) % task.kernels.key_tile;  // whole tiles
  }
  const bool whole = block.tail || task.spec.scores_output != ScoresOutput::kNone;
  for (int v = 0; v < 3; ++v) {
    const std::int64_t last = whole || v >= vectors - 1 ? part.end : std::int64_t{rows.vector_last[v]};
    part.vector_end[v] = std::clamp(last, part.begin, part.end) - part.begin;
  }
  return part;
}

/// The users' masks for a part: one row when it serves all lanes, else a panel. Shortens the part by the keys at its
/// end that are hidden from all.
struct PartBias {
  const float* row = nullptr;
  const float* panel = nullptr;
};

PartBias load_bias(const TiledTask& task, const GroupRows& rows, Part* part) {
  const std::int64_t keys = part->end - part->begin;
  const std::int64_t query_len = task.spec.query_len;
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  float* const to = task.scratch.bias_rows;
  const RowPlace first = place_of(task.unit, query_len, rows.group.begin);
  if (task.bias.same_for_all_queries() && (task.geometry.heads_per_unit == 1 || task.bias.same_for_all_heads())) {
    task.bias.fill(task.unit.batch, first.head, first.query, 1, part->begin, keys, to, keys);
    std::int64_t live = keys;
    while (live > 0 && to[live - 1] == kHidden) --live;
    part->end = part->begin + live;
    part->limited = std::min(part->limited, part->end);
    for (std::int64_t& end : part->vector_end) end = std::min(end, live);
    return {.row = to, .panel = nullptr};
  }
  const bool in_place = task.bias.in_place(part->begin, keys);
  // Rows of one head at a time; lanes beyond the last row repeat it.
  for (std::int64_t row = 0; row < rows.group.rows && !in_place;) {
    const RowPlace place = place_of(task.unit, query_len, rows.group.begin + row);
    const std::int64_t count = std::min(rows.group.rows - row, query_len - place.query);
    task.bias.fill(task.unit.batch, place.head, place.query, count, part->begin, keys, to + row * keys, keys);
    row += count;
  }
  const std::byte* lane_rows[kMaxGroupLanes];
  for (std::int64_t lane = 0; lane < group; ++lane) {
    const std::int64_t row = std::min(lane, rows.group.rows - 1);
    const RowPlace place = place_of(task.unit, query_len, rows.group.begin + row);
    const float* const at =
        in_place ? task.bias.row(task.unit.batch, place.head, place.query, part->begin) : to + row * keys;
    lane_rows[lane] = reinterpret_cast<const std::byte*>(at);
  }
  task.kernels.load({.rows = lane_rows,
                     .column_stride = 1,
                     .columns = keys,
                     .scale = 1,
                     .vectors = rows.group.vectors,
                     .panel = task.scratch.bias});
  return {.row = nullptr, .panel = task.scratch.bias};
}

/// Scores of keys [from, to) of a part, a depth block at a time. Vectors that see none of the later keys are left out
/// of their tiles.
void score_keys(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const KeyBlock& block,
                const Part& part, std::int64_t from, std::int64_t to, float* block_max, bool first_block) {
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  const std::int64_t depth = task.geometry.depth;
  const std::int64_t skipped = part.begin - block.begin;
  std::int64_t key = from;
  for (int v = 0; v < rows.group.vectors; ++v) {
    const std::int64_t keys = std::min(part.vector_end[v], to) - key;
    if (keys <= 0) continue;
    std::int64_t c = 0;
    do {
      const std::int64_t columns = std::min(task.geometry.depth_block, depth - c);
      WantedRows wanted[kMaxWanted];
      const int wanted_count = wanted_rows(
          task, rows, block, {skipped + key, keys, c, rows.group.vectors - v, first_block && key == 0}, wanted);
      task.kernels.score({.key = block.key + (skipped + key) * block.key_stride + c,
                          .key_stride = block.key_stride,
                          .keys = keys,
                          .depth = columns,
                          .queries = panels.queries + c * group,
                          .vectors = rows.group.vectors,
                          .first_vector = v,
                          .accumulate = c > 0,
                          .scores = task.scratch.scores + key * group,
                          .block_max = c + columns >= depth ? block_max : nullptr,
                          .wanted = wanted,
                          .wanted_count = wanted_count,
                          .scale = task.geometry.score_scale});
      c += columns;
    } while (c < depth);
    key += keys;
  }
}

/// Keys [from, …) of the part through softcap, masks and limits.
void adjust_part(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const Part& part,
                 const PartBias& bias, std::int64_t from, bool limits) {
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  AdjustTile tile{.vector_end = {},
                  .vectors = rows.group.vectors,
                  .softcap = task.spec.softcap,
                  .key_bias = bias.row != nullptr ? bias.row + from : nullptr,
                  .bias = bias.panel != nullptr ? bias.panel + from * group : nullptr,
                  .first = limits ? rows.tables.first : nullptr,
                  .end = rows.tables.end,
                  .key_offset = static_cast<std::int32_t>(part.begin + from),
                  .scores = task.scratch.scores + from * group,
                  .block_max = task.scratch.block_max,
                  .bias_max = panels.bias_max};
  for (int v = 0; v < 3; ++v) tile.vector_end[v] = std::max<std::int64_t>(part.vector_end[v] - from, 0);
  task.kernels.adjust(tile);
}

/// Work of a block, counted only while the profiler is on.
struct BlockCount {
  std::int64_t pairs = 0;         // that the lanes' rows see by the integer rules
  std::int64_t score_pairs = 0;   // in the tiles of the scores, padding included
  std::int64_t weight_pairs = 0;  // that went through exp and the context
};

BlockCount count_block(const TiledTask& task, const GroupRows& rows, const Part& part, bool tail) {
  BlockCount count;
  const bool all_see_all = tail || (rows.all.begin <= part.begin && part.end <= rows.all.end);
  if (all_see_all) count.pairs = rows.group.rows * (part.end - part.begin);
  for (std::int64_t lane = 0; lane < rows.group.rows && !all_see_all; ++lane) {
    const std::int64_t begin = std::max<std::int64_t>(part.begin, rows.tables.first[lane]);
    const std::int64_t end = std::min<std::int64_t>(part.end, rows.tables.end[lane]);
    count.pairs += std::max<std::int64_t>(end - begin, 0);
  }
  const int vectors = rows.group.vectors;
  std::int64_t begin = 0;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t tile = task.kernels.tile_rows[vectors - v - 1];
    const std::int64_t keys = std::max<std::int64_t>(part.vector_end[v] - begin, 0);
    count.score_pairs += keys_in_tiles(keys, tile) * (vectors - v) * task.geometry.lanes;
    count.weight_pairs += part.vector_end[v] * task.geometry.lanes;
    begin = std::max(begin, part.vector_end[v]);
  }
  return count;
}

}  // namespace

void begin_group(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels) {
  const auto load = task.spec.type == DataType::kBF16 ? task.kernels.load_bf16 : task.kernels.load;
  load({.rows = rows.tables.query_rows,
        .column_stride = task.args.query.strides[3],
        .columns = task.spec.head_dim,
        .scale = task.geometry.query_scale,
        .vectors = rows.group.vectors,
        .panel = panels.queries});
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  // The lowest float, not −inf: exp(−inf − maximum) must be 0 before the first visible score.
  std::fill_n(panels.maximum, group, kLowest);
  std::fill_n(panels.sum, group, 0.0f);
  std::fill_n(panels.bias_max, group, kHidden);
  task.clock.lap(PhaseClock::kPack, {.bytes = 2 * group * task.spec.head_dim * 4});
}

bool add_block(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const KeyBlock& block,
               bool first_block) {
  const int vectors = rows.group.vectors;
  const std::int64_t group = static_cast<std::int64_t>(vectors) * task.geometry.lanes;
  Part part = part_of(task, rows, block);
  if (part.end <= part.begin) return !first_block;

  PartBias bias;
  const bool masked = task.bias.any() && !block.tail;
  if (masked) {
    bias = load_bias(task, rows, &part);
    if (part.end <= part.begin) return !first_block;
  }
  std::fill_n(task.scratch.block_max, group, kLowest);
  // Keys from `adjusted` on go through a second pass; those before it have their maximum from the tiles already.
  const std::int64_t adjusted = masked || task.spec.softcap > 0 ? 0 : part.limited - part.begin;
  const std::int64_t keys = part.end - part.begin;
  score_keys(task, rows, panels, block, part, 0, adjusted, task.scratch.block_max, first_block);
  if (adjusted < keys) {
    score_keys(task, rows, panels, block, part, adjusted, keys, nullptr, first_block);
    adjust_part(task, rows, panels, part, bias, adjusted, part.limited < part.end);
  }
  if (block.tail) std::fill_n(panels.bias_max, group, 0.0f);
  if (task.spec.scores_output != ScoresOutput::kNone) store_scores(task, rows, part.begin, keys);
  const BlockCount count = task.clock.on() ? count_block(task, rows, part, block.tail) : BlockCount{};
  task.clock.lap(PhaseClock::kScores, {.flops_nominal = 2 * task.spec.head_dim * count.pairs,
                                       .flops_executed = 2 * task.spec.head_dim * count.score_pairs,
                                       .bytes = keys * task.spec.head_dim * 4});

  SoftmaxTile softmax{.vector_end = {part.vector_end[0], part.vector_end[1], part.vector_end[2]},
                      .vectors = vectors,
                      .scores = task.scratch.scores,
                      .block_max = task.scratch.block_max,
                      .maximum = panels.maximum,
                      .sum = panels.sum,
                      .rescale = task.scratch.rescale};
  task.kernels.softmax(softmax);
  task.clock.lap(PhaseClock::kSoftmax, {.exps = count.weight_pairs, .bytes = 2 * count.weight_pairs * 4});

  // Rows of value and of weights: keys, or pairs of them.
  const std::int64_t keys_per_row = task.geometry.pairs ? 2 : 1;
  const std::int64_t skipped = (part.begin - block.begin) / keys_per_row;
  ContextTile context{.value = block.value + skipped * (block.panel_columns ? block.panel_columns : block.value_stride),
                      .key_stride = block.value_stride,
                      .columns = *task.spec.value_head_dim,
                      .panel_columns = block.panel_columns,
                      .panel_stride = block.panel_stride,
                      .vector_end = {},
                      .vectors = vectors,
                      .scores = task.scratch.scores,
                      .rescale = first_block ? nullptr : task.scratch.rescale,
                      .context = panels.context};
  for (int v = 0; v < 3; ++v) context.vector_end[v] = (part.vector_end[v] + keys_per_row - 1) / keys_per_row;
  task.kernels.context(context);
  task.clock.lap(PhaseClock::kContext, {.flops_nominal = 2 * *task.spec.value_head_dim * count.pairs,
                                        .flops_executed = 2 * *task.spec.value_head_dim * count.weight_pairs,
                                        .bytes = keys * *task.spec.value_head_dim * 4});
  return true;
}

}  // namespace headway
