// Score outputs of `tiled`. Biased scores pass through the caller's rows and become probabilities there, once the
// row's maximum and sum are known.
#include "ops/attention/tiled/scores.h"

#include <algorithm>
#include <limits>

namespace headway {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

bool mean_mode(ScoresOutput mode) { return mode == ScoresOutput::kMeanProbabilities; }

/// The caller's row of scores for a lane.
float* caller_row(const TiledTask& task, const GroupRows& rows, std::int64_t lane) {
  const ConstTensorView scores = task.args.scores;
  auto* base = task.args.scores.as<float>() + task.unit.batch * scores.strides[0];
  const RowPlace place = place_of(task.unit, task.spec.query_len, rows.group.begin + lane);
  if (mean_mode(task.spec.scores_output)) return base + place.query * scores.strides[1];
  return base + place.head * scores.strides[1] + place.query * scores.strides[2];
}

std::int64_t caller_stride(const TiledTask& task) { return task.args.scores.strides[task.args.scores.rank() - 1]; }

void store(const TiledTask& task, const GroupRows& rows, std::int64_t begin, std::int64_t keys) {
  std::byte* lane_rows[kMaxGroupLanes];
  const int width = rows.group.vectors * task.geometry.lanes;
  for (int lane = 0; lane < width; ++lane) {
    // Lanes beyond the last row repeat its scores, so they may be written to the same place.
    float* const row = rows.tables.score_rows[std::min<std::int64_t>(lane, rows.group.rows - 1)] + begin;
    lane_rows[lane] = reinterpret_cast<std::byte*>(row);
  }
  task.kernels.store({.panel = task.scratch.scores,
                      .columns = keys,
                      .vectors = rows.group.vectors,
                      .factor = nullptr,
                      .rows = lane_rows,
                      .column_stride = 1});
}

}  // namespace

void place_scores(const TiledTask& task, float* scratch_rows, GroupRows* rows) {
  const bool scratch = mean_mode(task.spec.scores_output) || caller_stride(task) != 1;
  for (std::int64_t lane = 0; lane < rows->group.rows; ++lane) {
    rows->tables.score_rows[lane] = scratch ? scratch_rows + lane * task.spec.key_len : caller_row(task, *rows, lane);
  }
}

void clear_scores(const TiledTask& task, const GroupRows& rows) {
  if (has_raw_scores(task.spec)) return;
  for (std::int64_t lane = 0; lane < rows.group.rows; ++lane) {
    std::fill_n(rows.tables.score_rows[lane], task.spec.key_len, kHidden);
  }
}

void raw_scores(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, const KeyBlock& block) {
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  const std::int64_t keys = block.end - block.begin;
  task.kernels.score({.key = block.key,
                      .key_stride = block.key_stride,
                      .keys = keys,
                      .depth = task.spec.head_dim,
                      .queries = panels.queries,
                      .vectors = rows.group.vectors,
                      .first_vector = 0,
                      .accumulate = false,
                      .scores = task.scratch.scores,
                      .block_max = nullptr});
  if (task.spec.scores_output == ScoresOutput::kSoftcapped && task.spec.softcap > 0) {
    std::fill_n(task.scratch.block_max, group, kHidden);
    task.kernels.adjust({.vector_end = {keys, keys, keys},
                         .vectors = rows.group.vectors,
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
  store(task, rows, block.begin, keys);
}

void store_scores(const TiledTask& task, const GroupRows& rows, std::int64_t begin, std::int64_t keys) {
  if (!has_raw_scores(task.spec)) store(task, rows, begin, keys);
}

void finish_scores(const TiledTask& task, const SoftmaxKernels& kernels, const GroupRows& rows,
                   const GroupPanels& panels) {
  const ScoresOutput mode = task.spec.scores_output;
  const std::int64_t keys = task.spec.key_len;
  const std::int64_t stride = caller_stride(task);
  const float empty = task.spec.empty_row == EmptyRow::kZero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t lane = 0; lane < rows.group.rows; ++lane) {
    float* row = rows.tables.score_rows[lane];
    if (mode == ScoresOutput::kProbabilities || mean_mode(mode)) {
      if (is_empty_row(task, rows, panels, lane)) {
        std::fill_n(row, keys, empty);
      } else {
        kernels.normalize_row(row, keys, panels.maximum[lane], 1.0f / panels.sum[lane]);
      }
    }
    float* to = caller_row(task, rows, lane);
    if (mean_mode(mode)) {
      // Heads come in turn within a task, so the order of this sum is fixed.
      const float share = 1.0f / static_cast<float>(task.spec.num_heads);
      const bool first_head = task.unit.head == 0;
      for (std::int64_t j = 0; j < keys; ++j) to[j * stride] = (first_head ? 0.0f : to[j * stride]) + share * row[j];
    } else if (to != row) {
      for (std::int64_t j = 0; j < keys; ++j) to[j * stride] = row[j];
    }
  }
}

}  // namespace headway
