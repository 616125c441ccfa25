// Biased scores pass through the score rows and become probabilities there, once the maximum and sum of a row are
// known.
#include "ops/attention/tiled/tile_scores.h"

#include <algorithm>

#include "ops/attention/epilogue/empty_row.h"
#include "ops/attention/epilogue/recompute_rows.h"
#include "ops/attention/epilogue/score_output.h"
#include "ops/base/hidden_score.h"

namespace headway {
namespace {

/// The caller's row of scores for a lane.
float* caller_row(const QueryTile& tile, const ScoreOutput& output, std::int64_t lane) {
  const TiledTask& task = tile.task();
  const QueryRow row = task.heads.row(tile.rows().tile.begin + lane, task.spec.query_len);
  return output.row(task.heads.batch, row.head, row.query);
}

/// The scores panel to the score rows.
void store(const QueryTile& tile, std::int64_t begin, std::int64_t keys) {
  std::byte* lane_rows[kMaxTileLanes];
  for (std::int64_t lane = 0; lane < tile.lanes(); ++lane) {
    // Lanes beyond the last row repeat its scores, so they may be written to the same place.
    float* const row = tile.rows().tables.score_rows[std::min(lane, tile.rows().tile.rows - 1)] + begin;
    lane_rows[lane] = reinterpret_cast<std::byte*>(row);
  }
  tile.task().kernels.store({.panel = tile.task().scratch.scores,
                             .columns = keys,
                             .vectors = tile.vectors(),
                             .factor = nullptr,
                             .rows = lane_rows,
                             .column_stride = 1});
}

}  // namespace

void begin_scores(float* scratch_rows, QueryTile* tile) {
  const TiledTask& task = tile->task();
  const ScoreOutput output(task.spec, task.args);
  const std::int64_t keys = task.spec.key_len;
  for (std::int64_t lane = 0; lane < tile->rows().tile.rows; ++lane) {
    float* const row = output.is_dense() ? caller_row(*tile, output, lane) : scratch_rows + lane * keys;
    tile->set_score_row(lane, row);
    if (!has_raw_scores(task.spec)) std::fill_n(row, keys, kHiddenScore);
  }
}

void store_raw_scores(const QueryTile& tile, const KeyBlock& block) {
  const TiledTask& task = tile.task();
  const std::int64_t keys = block.end - block.begin;
  task.kernels.score({.key = block.key,
                      .key_stride = block.key_stride,
                      .keys = keys,
                      .depth = task.spec.head_dim,
                      .queries = tile.panels().queries,
                      .vectors = tile.vectors(),
                      .first_vector = 0,
                      .accumulate = false,
                      .scores = task.scratch.scores,
                      .block_max = nullptr});
  if (task.spec.scores_output == ScoresOutput::kSoftcapped && task.spec.softcap > 0) {
    std::fill_n(task.scratch.block_max, tile.lanes(), kHiddenScore);
    task.kernels.adjust({.vector_end = {keys, keys, keys},
                         .vectors = tile.vectors(),
                         .softcap = task.spec.softcap,
                         .key_bias = nullptr,
                         .bias = nullptr,
                         .first = nullptr,
                         .end = nullptr,
                         .key_offset = 0,
                         .scores = task.scratch.scores,
                         .block_max = task.scratch.block_max,
                         .bias_max = nullptr});
  }
  store(tile, block.begin, keys);
}

void store_biased_scores(const QueryTile& tile, std::int64_t begin, std::int64_t keys) {
  if (!has_raw_scores(tile.task().spec)) store(tile, begin, keys);
}

void finish_scores(const QueryTile& tile, const SoftmaxKernels& kernels) {
  const TiledTask& task = tile.task();
  const ScoreOutput output(task.spec, task.args);
  const std::int64_t keys = task.spec.key_len;
  const QueryTilePanels& panels = tile.panels();
  for (std::int64_t lane = 0; lane < tile.rows().tile.rows; ++lane) {
    float* const row = tile.rows().tables.score_rows[lane];
    if (has_probs(task.spec)) {
      if (tile.is_empty_row(lane)) {
        std::fill_n(row, keys, empty_row_value(task.spec));
      } else {
        kernels.normalize_row(row, keys, panels.maximum[lane], 1.0f / panels.sum[lane]);
        if (!(panels.sum[lane] > 0)) {  // NaN, or 0 where all visible scores are −inf
          const QueryRow at = task.heads.row(tile.rows().tile.begin + lane, task.spec.query_len);
          clear_hidden_probs(task.spec, task.args, {task.heads.batch, at.head, at.query}, row);
        }
      }
    }
    if (output.is_dense()) continue;
    float* const to = caller_row(tile, output, lane);
    // A mean is summed over the heads of one task in turn, starting from zero.
    if (has_mean_probs(task.spec) && task.heads.first_head == 0) output.fill(to, 0.0f);
    output.write(to, 0, row, keys);
  }
}

}  // namespace headway
