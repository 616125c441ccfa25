// Every array of the call and of a worker.
#include "ops/cached_attention/workspace.h"

#include <algorithm>

namespace headway {

CachedWorkspace::CachedWorkspace(const CachedAttentionSpec& spec, const CachedGeometry& geometry,
                                 const AttentionTileKernels& kernels)
    : value_head_dim_(*spec.value_head_dim), tile_lanes_(geometry.tile_lanes) {
  plans_ = layout_.shared<SequencePlan>(spec.max_batch + 1);
  maximum_ = layout_.shared<float>(geometry.state_rows);
  sum_ = layout_.shared<float>(geometry.state_rows);
  live_ = layout_.shared<float>(geometry.state_rows);
  context_ = layout_.shared<float>(geometry.state_rows * value_head_dim_);

  const auto floats = [&](std::int64_t count) { return layout_.per_worker<float>(count); };
  const std::int64_t lanes = geometry.tile_lanes;
  constexpr std::int64_t kBlock = CachedGeometry::kKeyBlock;
  scores_ = floats((kBlock + 8) * lanes);
  block_max_ = floats(lanes);
  rescale_ = floats(lanes);
  bias_rows_ = floats(lanes * kBlock);
  bias_ = floats(kBlock * lanes);
  key_ = floats(kBlock * spec.head_dim);
  value_ = floats(kBlock * round_up(value_head_dim_, kernels.value_columns));
  rows_ = floats(lanes * std::max(spec.head_dim, value_head_dim_));
  addresses_ = layout_.per_worker<const std::byte*>(kBlock);
  const std::int64_t states = geometry.fold_levels + 1;
  for (int t = 0; t < geometry.max_tiles; ++t) {
    tiles_[t] = {.queries = floats(spec.head_dim * lanes),
                 .bias_max = floats(lanes),
                 .maximum = floats(states * lanes),
                 .sum = floats(states * lanes),
                 .live = floats(states * lanes),
                 .context = floats(states * value_head_dim_ * lanes),
                 .query_rows = layout_.per_worker<const std::byte*>(lanes),
                 .out_rows = layout_.per_worker<std::byte*>(lanes),
                 .first = layout_.per_worker<std::int32_t>(lanes),
                 .end = layout_.per_worker<std::int32_t>(lanes)};
  }

  const std::int64_t few = geometry.few_rows;
  const std::int64_t table = few > 0 ? kKeyStreams * (kStreamSteps + kPrefetchSteps) : 0;
  few_queries_ = floats(few * spec.head_dim);
  few_scores_ = floats(few * kStreamKeys);
  few_bias_ = floats(few > 0 ? kStreamKeys : 0);
  few_rescale_ = floats(few);
  few_maximum_ = floats(few);
  few_sum_ = floats(few);
  few_live_ = floats(few);
  few_context_ = floats(few * value_head_dim_);
  few_key_ = layout_.per_worker<const std::byte*>(table);
  few_value_ = layout_.per_worker<const std::byte*>(table);
  floats(kCacheLineFloats);  // padding, so that the regions of two workers are not a power of two apart
}

SoftmaxState CachedWorkspace::state(std::byte* workspace, std::int64_t row) const {
  return {.maximum = maximum_.in(workspace) + row,
          .sum = sum_.in(workspace) + row,
          .live = live_.in(workspace) + row,
          .context = context_.in(workspace) + row * value_head_dim_};
}

TileScratch CachedWorkspace::tile_scratch(std::byte* workspace, int worker) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  return {.scores = scores_.in(region),
          .block_max = block_max_.in(region),
          .rescale = rescale_.in(region),
          .bias_rows = bias_rows_.in(region),
          .bias = bias_.in(region),
          .key = key_.in(region),
          .value = value_.in(region),
          .rows = rows_.in(region),
          .addresses = addresses_.in(region)};
}

TilePanels CachedWorkspace::panels(std::byte* workspace, int worker, int tile) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  const Tile& t = tiles_[tile];
  return {.queries = t.queries.in(region),
          .bias_max = t.bias_max.in(region),
          .query_rows = t.query_rows.in(region),
          .out_rows = t.out_rows.in(region),
          .first = t.first.in(region),
          .end = t.end.in(region)};
}

SoftmaxState CachedWorkspace::tile_state(std::byte* workspace, int worker, int tile, std::int64_t level) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  const Tile& t = tiles_[tile];
  return {.maximum = t.maximum.in(region) + level * tile_lanes_,
          .sum = t.sum.in(region) + level * tile_lanes_,
          .live = t.live.in(region) + level * tile_lanes_,
          .context = t.context.in(region) + level * value_head_dim_ * tile_lanes_};
}

FewScratch CachedWorkspace::few_scratch(std::byte* workspace, int worker) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  return {.queries = few_queries_.in(region),
          .scores = few_scores_.in(region),
          .bias = few_bias_.in(region),
          .rescale = few_rescale_.in(region),
          .rows = {.maximum = few_maximum_.in(region),
                   .sum = few_sum_.in(region),
                   .live = few_live_.in(region),
                   .context = few_context_.in(region)},
          .key = few_key_.in(region),
          .value = few_value_.in(region)};
}

}  // namespace headway
