// The steps on one block: scores, masks, softmax, context; and the end of a tile, from its panels to rows of memory.
#include "ops/attention/tiled/query_tile.h"

#include <algorithm>

#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/epilogue/log_sum_exp.h"
#include "ops/attention/epilogue/recompute_rows.h"
#include "ops/attention/tiled/prefetch.h"
#include "ops/attention/tiled/tile_keys.h"
#include "ops/attention/tiled/tile_scores.h"
#include "ops/base/hidden_score.h"

namespace headway {
namespace {

/// Scores of keys [from, to) of a tile's keys, depth_block columns at a time. Vectors that see none of the later keys
/// are left out of their register tiles.
void score_keys(const QueryTile& tile, const KeyBlock& block, const TileKeys& tile_keys, std::int64_t from,
                std::int64_t to, float* block_max, bool first_block) {
  const TiledTask& task = tile.task();
  const std::int64_t lanes = tile.lanes();
  const std::int64_t depth = task.geometry.depth;
  const std::int64_t skipped = tile_keys.begin - block.begin;
  const int vectors = tile.vectors();
  std::int64_t key = from;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t keys = std::min(tile_keys.vector_end[v], to) - key;
    if (keys <= 0) continue;
    std::int64_t c = 0;
    do {
      const std::int64_t columns = std::min(task.geometry.depth_block, depth - c);
      PrefetchRows prefetches[kMaxPrefetches];
      const int prefetch_count =
          prefetch_rows(tile, block, {skipped + key, keys, c, vectors - v, first_block && key == 0}, prefetches);
      task.kernels.score({.key = block.key + (skipped + key) * block.key_stride + c,
                          .key_stride = block.key_stride,
                          .keys = keys,
                          .depth = columns,
                          .queries = tile.panels().queries + c * lanes,
                          .vectors = vectors,
                          .first_vector = v,
                          .accumulate = c > 0,
                          .scores = task.scratch.scores + key * lanes,
                          .block_max = c + columns >= depth ? block_max : nullptr,
                          .prefetches = prefetches,
                          .prefetch_count = prefetch_count,
                          .scale = task.geometry.score_scale});
      c += columns;
    } while (c < depth);
    key += keys;
  }
}

/// Softcap, masks and limits for a tile's keys from `from` on.
void adjust_keys(const QueryTile& tile, const TileKeys& keys, const TileBias& bias, std::int64_t from, bool limits) {
  const TiledTask& task = tile.task();
  const LaneTables& tables = tile.rows().tables;
  const std::int64_t lanes = tile.lanes();
  AdjustTile adjust{.vector_end = {},
                    .vectors = tile.vectors(),
                    .softcap = task.spec.softcap,
                    .key_bias = bias.row != nullptr ? bias.row + from : nullptr,
                    .bias = bias.panel != nullptr ? bias.panel + from * lanes : nullptr,
                    .first = limits ? tables.first : nullptr,
                    .end = tables.end,
                    .key_offset = static_cast<std::int32_t>(keys.begin + from),
                    .scores = task.scratch.scores + from * lanes,
                    .block_max = task.scratch.block_max,
                    .bias_max = tile.panels().bias_max};
  for (int v = 0; v < 3; ++v) adjust.vector_end[v] = std::max<std::int64_t>(keys.vector_end[v] - from, 0);
  task.kernels.adjust(adjust);
}

}  // namespace

QueryTile::QueryTile(const TiledTask& task, const QueryTileRows& rows, const LaneTables& tables,
                     const QueryTilePanels& panels, const Visibility& visibility)
    : task_(&task), rows_{.tile = rows, .tables = tables, .any = {}, .all = {}, .vector_last = {}}, panels_(panels) {
  fill_lane_rows(task, visibility, &rows_);
}

void QueryTile::begin() {
  if (begun_) return;
  begun_ = true;
  const TiledTask& task = *task_;
  const auto load = task.spec.type == DataType::kBF16 ? task.kernels.load_bf16 : task.kernels.load;
  load({.rows = rows_.tables.query_rows,
        .column_stride = task.args.query.strides[3],
        .columns = task.spec.head_dim,
        .scale = task.geometry.query_scale,
        .vectors = vectors(),
        .panel = panels_.queries});
  std::fill_n(panels_.maximum, lanes(), kLowestScore);
  std::fill_n(panels_.sum, lanes(), 0.0f);
  std::fill_n(panels_.bias_max, lanes(), kHiddenScore);
  task.clock.lap(PhaseClock::kPack, {.bytes = 2 * lanes() * task.spec.head_dim * 4});
}

void QueryTile::add_block(const KeyBlock& block) {
  begin();
  const TiledTask& task = *task_;
  const bool first_block = !has_context_;
  TileKeys tile_keys = tile_keys_of(*this, block);
  if (tile_keys.end <= tile_keys.begin) return;

  TileBias bias;
  const bool masked = task.bias.any() && !block.always_visible;
  if (masked) {
    bias = load_bias(*this, &tile_keys);
    if (tile_keys.end <= tile_keys.begin) return;
  }
  std::fill_n(task.scratch.block_max, lanes(), kLowestScore);
  // Keys from `adjusted` on go through a second pass; those before it have their maximum from the register tiles.
  const std::int64_t adjusted = masked || task.spec.softcap > 0 ? 0 : tile_keys.limited - tile_keys.begin;
  const std::int64_t keys = tile_keys.end - tile_keys.begin;
  score_keys(*this, block, tile_keys, 0, adjusted, task.scratch.block_max, first_block);
  if (adjusted < keys) {
    score_keys(*this, block, tile_keys, adjusted, keys, nullptr, first_block);
    adjust_keys(*this, tile_keys, bias, adjusted, tile_keys.limited < tile_keys.end);
  }
  if (block.always_visible) std::fill_n(panels_.bias_max, lanes(), 0.0f);
  if (task.spec.scores_output != ScoresOutput::kNone) store_biased_scores(*this, tile_keys.begin, keys);
  const TileWork work = task.clock.on() ? count_work(*this, tile_keys, block.always_visible) : TileWork{};
  task.clock.lap(PhaseClock::kScores, {.flops_nominal = 2 * task.spec.head_dim * work.pairs,
                                       .flops_executed = 2 * task.spec.head_dim * work.score_pairs,
                                       .bytes = keys * task.spec.head_dim * 4});

  task.kernels.softmax({.vector_end = {tile_keys.vector_end[0], tile_keys.vector_end[1], tile_keys.vector_end[2]},
                        .vectors = vectors(),
                        .scores = task.scratch.scores,
                        .block_max = task.scratch.block_max,
                        .maximum = panels_.maximum,
                        .sum = panels_.sum,
                        .rescale = task.scratch.rescale});
  task.clock.lap(PhaseClock::kSoftmax, {.exps = work.prob_pairs, .bytes = 2 * work.prob_pairs * 4});

  // Rows of value and of probabilities: keys, or pairs of them.
  const std::int64_t keys_per_row = task.geometry.pairs ? 2 : 1;
  const std::int64_t skipped = (tile_keys.begin - block.begin) / keys_per_row;
  const std::int64_t row_stride = block.panel_columns != 0 ? block.panel_columns : block.value_stride;
  ContextTile context{.value = block.value + skipped * row_stride,
                      .key_stride = block.value_stride,
                      .columns = *task.spec.value_head_dim,
                      .panel_columns = block.panel_columns,
                      .panel_stride = block.panel_stride,
                      .vector_end = {},
                      .vectors = vectors(),
                      .scores = task.scratch.scores,
                      .rescale = first_block ? nullptr : task.scratch.rescale,
                      .context = panels_.context};
  for (int v = 0; v < 3; ++v) context.vector_end[v] = (tile_keys.vector_end[v] + keys_per_row - 1) / keys_per_row;
  task.kernels.context(context);
  task.clock.lap(PhaseClock::kContext, {.flops_nominal = 2 * *task.spec.value_head_dim * work.pairs,
                                        .flops_executed = 2 * *task.spec.value_head_dim * work.prob_pairs,
                                        .bytes = keys * *task.spec.value_head_dim * 4});
  has_context_ = true;
}

bool QueryTile::is_empty_row(std::int64_t lane) const {
  if (task_->bias.any()) return panels_.bias_max[lane] == kHiddenScore;
  return task_->spec.always_visible_keys == 0 && rows_.tables.end[lane] <= rows_.tables.first[lane];
}

/// The context, divided by the sums, to rows of the output.
void QueryTile::store_context() const {
  const TiledTask& task = *task_;
  float* const factor = task.scratch.rescale;
  for (std::int64_t lane = 0; lane < lanes(); ++lane) factor[lane] = 1.0f / panels_.sum[lane];
  const auto store = task.spec.type == DataType::kBF16 ? task.kernels.store_bf16 : task.kernels.store;
  const bool finite = store({.panel = panels_.context,
                             .columns = *task.spec.value_head_dim,
                             .vectors = vectors(),
                             .factor = factor,
                             .rows = rows_.tables.out_rows,
                             .column_stride = task.args.out.strides[3]});
  for (std::int64_t lane = 0; lane < rows_.tile.rows && !finite; ++lane) {
    const std::byte* const out = rows_.tables.out_rows[lane];
    if (!must_recompute(panels_.sum[lane], output_row_is_finite(task.args.out, out, *task.spec.value_head_dim)))
      continue;
    const QueryRow row = task.heads.row(rows_.tile.begin + lane, task.spec.query_len);
    recompute_nonfinite_row(task.spec, task.args, {task.heads.batch, row.head, row.query});
  }
}

/// A row that saw no key has a sum of 0, and so −inf.
void QueryTile::write_log_sum_exps(const SoftmaxKernels& kernels) const {
  const TiledTask& task = *task_;
  const std::int64_t rows = rows_.tile.rows;
  float* const values = task.scratch.block_max;
  kernels.log_sum_exp(panels_.maximum, panels_.sum, values, rows);
  for (std::int64_t lane = 0; lane < rows;) {
    const QueryRow row = task.heads.row(rows_.tile.begin + lane, task.spec.query_len);
    const std::int64_t of_head = std::min(rows - lane, task.spec.query_len - row.query);
    write_log_sum_exp(task.args.log_sum_exp, task.heads.batch, row.head, row.query, of_head, values + lane);
    lane += of_head;
  }
}

void QueryTile::finish() const {
  const TiledTask& task = *task_;
  const std::int64_t columns = *task.spec.value_head_dim;
  if (has_context_) store_context();
  const bool none_empty = has_context_ && !task.bias.any() && !rows_.all.empty();
  for (std::int64_t lane = 0; lane < rows_.tile.rows && !none_empty; ++lane) {
    if (has_context_ && !is_empty_row(lane)) continue;
    fill_row(task.spec.type, rows_.tables.out_rows[lane], columns, task.args.out.strides[3],
             empty_row_value(task.spec));
  }
  task.clock.lap(PhaseClock::kPack, {.bytes = 2 * lanes() * columns * 4});
}

}  // namespace headway
