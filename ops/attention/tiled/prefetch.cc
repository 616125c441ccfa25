// Four kinds of rows, each spread over the tiles of one call.
#include "ops/attention/tiled/prefetch.h"

#include <algorithm>

namespace headway {

int wanted_rows(const TiledTask& task, const GroupRows& rows, const KeyBlock& block, const ScoreCall& call,
                WantedRows* wanted) {
  constexpr std::int64_t kMaxPerTile = 8;
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  const auto real = static_cast<std::int64_t>(size_bytes(task.spec.type));
  const std::int64_t tile = task.kernels.tile_rows[call.vectors - 1];
  const std::int64_t tiles = (call.keys + tile - 1) / tile;
  int count = 0;
  // Rows of `columns` elements; those before the call's column were asked for by an earlier call.
  const auto want = [&](const void* first, std::int64_t stride, std::int64_t many, std::int64_t columns,
                        std::int64_t element) {
    const std::int64_t done = call.column * element;
    if (columns * element <= done) return;
    wanted[count++] = {static_cast<const std::byte*>(first) + done, stride * element, many, columns * element - done,
                       std::min((many + tiles - 1) / tiles, kMaxPerTile)};
  };
  if (block.cold) {
    const float* const next_key = block.key + (call.key + tile) * block.key_stride;
    want(next_key, block.key_stride, call.keys, task.geometry.depth, kFloat);
    if (block.panel_columns == 0) {
      const float* const value = block.value + call.key * block.value_stride;
      want(value, block.value_stride, call.keys, *task.spec.value_head_dim, kFloat);
    }
  }
  if (call.first && task.geometry.fetch) {
    const std::int64_t many = rows.group.rows;
    const std::int64_t query_stride = task.args.query.strides[2];
    const std::byte* const next_query = rows.tables.query_rows[0] + many * query_stride * real;
    want(rows.tables.out_rows[0], task.args.out.strides[2], many, *task.spec.value_head_dim, real);
    want(next_query, query_stride, many, task.spec.head_dim, real);
  }
  return count;
}

}  // namespace headway
