// Four kinds of rows, each spread over the register tiles of one call.
#include "ops/attention/tiled/prefetch.h"

#include <algorithm>

#include "ops/base/layout.h"

namespace headway {

int prefetch_rows(const QueryTile& tile, const KeyBlock& block, const ScoreCall& call, PrefetchRows* prefetches) {
  constexpr std::int64_t kMaxPerTile = 8;
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  const TiledTask& task = tile.task();
  const LaneRows& rows = tile.rows();
  const auto element = static_cast<std::int64_t>(size_bytes(task.spec.type));
  const std::int64_t tile_keys = task.kernels.tile_rows[call.vectors - 1];
  const std::int64_t tiles = ceil_div(call.keys, tile_keys);
  int count = 0;
  // `many` rows of `columns` elements; earlier calls prefetched those before the call's column.
  const auto add = [&](const void* first, std::int64_t stride, std::int64_t many, std::int64_t columns,
                       std::int64_t element_bytes) {
    const std::int64_t done = call.column * element_bytes;
    if (columns * element_bytes <= done) return;
    prefetches[count++] = {static_cast<const std::byte*>(first) + done, stride * element_bytes, many,
                           columns * element_bytes - done, std::min(ceil_div(many, tiles), kMaxPerTile)};
  };
  if (block.cold) {
    const float* const next_key = block.key + (call.key + tile_keys) * block.key_stride;
    add(next_key, block.key_stride, call.keys, task.geometry.depth, kFloat);
    if (block.panel_columns == 0) {
      const float* const value = block.value + call.key * block.value_stride;
      add(value, block.value_stride, call.keys, *task.spec.value_head_dim, kFloat);
    }
  }
  if (call.first && task.geometry.prefetch) {
    const std::int64_t many = rows.tile.rows;
    const std::int64_t query_stride = task.args.query.strides[2];
    const std::byte* const next_query = rows.tables.query_rows[0] + many * query_stride * element;
    add(rows.tables.out_rows[0], task.args.out.strides[2], many, *task.spec.value_head_dim, element);
    add(next_query, query_stride, many, task.spec.head_dim, element);
  }
  return count;
}

}  // namespace headway
