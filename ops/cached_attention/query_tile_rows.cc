// The end of a tile: from its panels to rows of the output, or to the states of split rows.
#include <algorithm>
#include <cmath>

#include "ops/base/numeric.h"
#include "ops/cached_attention/finish_rows.h"
#include "ops/cached_attention/query_tile.h"
#include "ops/cached_attention/recompute_context.h"

namespace headway {

bool CachedQueryTile::store(const SoftmaxState& state, DataType type, const float* factor,
                            std::byte* const* rows) const {
  const AttentionTileKernels& kernels = keys_->call.kernels.tile;
  return (type == DataType::kBF16 ? kernels.store_bf16 : kernels.store)({.panel = state.context,
                                                                         .columns = *keys_->call.spec.value_head_dim,
                                                                         .vectors = rows_.vectors,
                                                                         .factor = factor,
                                                                         .rows = rows,
                                                                         .column_stride = 1});
}

float* CachedQueryTile::recomputed(const SoftmaxState& state, std::int64_t lane) const {
  const std::int64_t columns = *keys_->call.spec.value_head_dim;
  if (state.live[lane] == 0 || !std::isfinite(state.sum[lane])) return nullptr;
  if (all_finite(state.context + lane, columns, lanes())) return nullptr;
  recompute_context(*keys_, keys_->row(rows_.begin + lane), {panels_.queries + lane, lanes()}, {scratch_.rows, 1},
                    &state.maximum[lane], &state.sum[lane]);
  return scratch_.rows;
}

void CachedQueryTile::write_rows() {
  const CachedCall& call = keys_->call;
  const SoftmaxState state = finished_state();
  const std::int64_t columns = *call.spec.value_head_dim;
  float* const factor = scratch_.rescale;
  for (std::int64_t lane = 0; lane < lanes(); ++lane) {
    const CachedRow row = keys_->row(rows_.begin + std::min(lane, rows_.rows - 1));
    const RowEnd end = row_end(call, row.head, state.maximum[lane], state.sum[lane], state.live[lane] != 0);
    factor[lane] = end.factor;
    if (lane < rows_.rows) write_log_sum_exp(call, keys_->sequence.first_token + row.token, row.head, end.log_sum_exp);
  }
  const bool narrow_after = call.spec.type == DataType::kF16;  // a type that the panel kernels do not know
  if (narrow_after) {
    for (std::int64_t lane = 0; lane < lanes(); ++lane) {
      panels_.query_rows[lane] = reinterpret_cast<const std::byte*>(scratch_.rows + lane * columns);
    }
  }
  std::byte* const* const to = narrow_after ? const_cast<std::byte* const*>(panels_.query_rows) : panels_.out_rows;
  const bool finite = store(state, call.spec.type, factor, to);
  const RowTypeKernels& kernels = call.kernels.rows.of(call.spec.type);
  for (std::int64_t lane = 0; lane < rows_.rows && narrow_after; ++lane) {
    kernels.narrow(scratch_.rows + lane * columns, 1, panels_.out_rows[lane], columns);
  }
  for (std::int64_t lane = 0; lane < rows_.rows; ++lane) {
    if (state.live[lane] == 0) {
      write_empty_row(call, panels_.out_rows[lane]);
    } else if (!finite) {
      float* const context = recomputed(state, lane);
      if (context == nullptr) continue;
      const CachedRow row = keys_->row(rows_.begin + lane);
      const RowEnd end = row_end(call, row.head, state.maximum[lane], state.sum[lane], true);
      kernels.narrow(context, end.factor, panels_.out_rows[lane], columns);
    }
  }
}

void CachedQueryTile::write_states(const SoftmaxState& states) {
  const SoftmaxState state = finished_state();
  const std::int64_t columns = *keys_->call.spec.value_head_dim;
  const auto context_of = [&](std::int64_t lane) {
    return states.context + (rows_.begin + std::min(lane, rows_.rows - 1)) * columns;
  };
  for (std::int64_t lane = 0; lane < lanes(); ++lane) {
    panels_.out_rows[lane] = reinterpret_cast<std::byte*>(context_of(lane));
  }
  const bool finite = store(state, DataType::kF32, nullptr, panels_.out_rows);
  for (std::int64_t lane = 0; lane < rows_.rows; ++lane) {
    if (!finite) {
      if (const float* const context = recomputed(state, lane)) std::copy_n(context, columns, context_of(lane));
    }
    states.maximum[rows_.begin + lane] = state.maximum[lane];
    states.sum[rows_.begin + lane] = state.sum[lane];
    states.live[rows_.begin + lane] = state.live[lane];
  }
}

}  // namespace headway
