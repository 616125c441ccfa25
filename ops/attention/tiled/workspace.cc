// Every array of a worker, in the order in which a task first touches it.
#include "ops/attention/tiled/workspace.h"

namespace headway {

TiledWorkspace::TiledWorkspace(const AttentionSpec& spec, const AttentionTileKernels& kernels,
                               const TiledGeometry& geometry) {
  const std::int64_t lanes = geometry.tile_lanes;
  const bool masked = spec.mask != MaskKind::kNone || spec.key_mask != MaskKind::kNone;
  const bool scores_out = spec.scores_output != ScoresOutput::kNone;
  const auto floats = [&](std::int64_t count) { return layout_.per_worker<float>(count); };
  scores_ = floats((geometry.key_block + 8) * lanes);
  block_max_ = floats(lanes);
  rescale_ = floats(lanes);
  bias_rows_ = floats(masked ? lanes * geometry.key_block : 0);
  bias_ = floats(masked ? geometry.key_block * lanes : 0);
  key_ = floats(geometry.key_block * spec.head_dim);
  value_ = floats(geometry.key_block * round_up(*spec.value_head_dim, kernels.value_columns));
  score_rows_ = floats(scores_out ? lanes * spec.key_len : 0);
  for (std::int64_t t = 0; t < geometry.tiles_per_task; ++t) {
    tiles_[t] = {.query_rows = layout_.per_worker<const std::byte*>(lanes),
                 .out_rows = layout_.per_worker<std::byte*>(lanes),
                 .score_rows = layout_.per_worker<float*>(lanes),
                 .first = layout_.per_worker<std::int32_t>(lanes),
                 .end = layout_.per_worker<std::int32_t>(lanes),
                 .queries = floats(spec.head_dim * lanes),
                 .context = floats(*spec.value_head_dim * lanes),
                 .maximum = floats(lanes),
                 .sum = floats(lanes),
                 .bias_max = floats(lanes)};
  }
  floats(kCacheLineFloats);  // padding, so that the regions of two workers are not a power of two apart
}

BlockScratch TiledWorkspace::block_scratch(std::byte* region) const {
  return {.scores = scores_.in(region),
          .block_max = block_max_.in(region),
          .rescale = rescale_.in(region),
          .bias_rows = bias_rows_.in(region),
          .bias = bias_.in(region),
          .key = key_.in(region),
          .value = value_.in(region)};
}

LaneTables TiledWorkspace::lane_tables(std::byte* region, std::int64_t tile) const {
  const Tile& t = tiles_[tile];
  return {.query_rows = t.query_rows.in(region),
          .out_rows = t.out_rows.in(region),
          .score_rows = t.score_rows.in(region),
          .first = t.first.in(region),
          .end = t.end.in(region)};
}

QueryTilePanels TiledWorkspace::panels(std::byte* region, std::int64_t tile) const {
  const Tile& t = tiles_[tile];
  return {.queries = t.queries.in(region),
          .context = t.context.in(region),
          .maximum = t.maximum.in(region),
          .sum = t.sum.in(region),
          .bias_max = t.bias_max.in(region)};
}

}  // namespace headway
