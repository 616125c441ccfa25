// The end of a group: context to rows of memory, rows that saw nothing, and rows that a hidden NaN or infinity reached.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/attention/tiled/scores.h"
#include "ops/base/numeric.h"
#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

bool row_is_finite(DataType type, const std::byte* row, std::int64_t columns, std::int64_t stride) {
  if (type == DataType::kBF16) return all_finite(reinterpret_cast<const BFloat16*>(row), columns, stride);
  return all_finite(reinterpret_cast<const float*>(row), columns, stride);
}

void fill_row(DataType type, std::byte* row, std::int64_t columns, std::int64_t stride, float value) {
  for (std::int64_t c = 0; c < columns; ++c) {
    if (type == DataType::kBF16) {
      reinterpret_cast<BFloat16*>(row)[c * stride] = to_bfloat16(value);
    } else {
      reinterpret_cast<float*>(row)[c * stride] = value;
    }
  }
}

/// A hidden key's weight is exactly 0, but 0·NaN is NaN; and a sum of large values may overflow before it is divided.
/// Rows whose weights are finite and whose output is not are computed again by the reference, which never reads a
/// hidden value and sums in double.
void recompute_nonfinite_rows(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels) {
  AttentionSpec spec = task.spec;
  spec.scores_output = ScoresOutput::kNone;
  for (std::int64_t lane = 0; lane < rows.group.rows; ++lane) {
    const std::byte* out = rows.tables.out_rows[lane];
    if (!std::isfinite(panels.sum[lane])) continue;
    if (row_is_finite(spec.type, out, *spec.value_head_dim, task.args.out.strides[3])) continue;
    const RowPlace place = place_of(task.unit, spec.query_len, rows.group.begin + lane);
    reference_attention_rows(spec, task.args, {task.unit.batch, place.head, place.query, place.query + 1});
  }
}

}  // namespace

bool is_empty_row(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, std::int64_t lane) {
  if (task.bias.any()) return panels.bias_max[lane] == -std::numeric_limits<float>::infinity();
  return task.spec.always_visible_keys == 0 && rows.tables.end[lane] <= rows.tables.first[lane];
}

void end_group(const TiledTask& task, const GroupRows& rows, const GroupPanels& panels, bool any_block) {
  const std::int64_t columns = *task.spec.value_head_dim;
  const std::int64_t stride = task.args.out.strides[3];
  const std::int64_t group = static_cast<std::int64_t>(rows.group.vectors) * task.geometry.lanes;
  float* const factor = task.scratch.rescale;
  const float empty = task.spec.empty_row == EmptyRow::kZero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  if (any_block) {
    for (std::int64_t lane = 0; lane < group; ++lane) factor[lane] = 1.0f / panels.sum[lane];
    const auto store = task.spec.type == DataType::kBF16 ? task.kernels.store_bf16 : task.kernels.store;
    const bool finite = store({.panel = panels.context,
                               .columns = columns,
                               .vectors = rows.group.vectors,
                               .factor = factor,
                               .rows = rows.tables.out_rows,
                               .column_stride = stride});
    if (!finite) recompute_nonfinite_rows(task, rows, panels);
  }
  const bool none_empty = !task.bias.any() && !rows.all.empty();
  for (std::int64_t lane = 0; lane < rows.group.rows && !(any_block && none_empty); ++lane) {
    if (any_block && !is_empty_row(task, rows, panels, lane)) continue;
    fill_row(task.spec.type, rows.tables.out_rows[lane], columns, stride, empty);
  }
  task.clock.lap(PhaseClock::kPack, {.bytes = 2 * group * columns * 4});
}

}  // namespace headway
