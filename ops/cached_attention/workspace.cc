// Every array of the call and of a worker.
#include "ops/cached_attention/workspace.h"

#include <algorithm>

namespace headway {

CachedWorkspace::CachedWorkspace(const CachedAttentionSpec& spec, const CachedGeometry& geometry)
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
  key_ = floats(kBlock * (spec.head_dim + kGatherPadding));
  value_ = floats(kBlock * (value_head_dim_ + kGatherPadding));
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

  constexpr std::int64_t kFew = CachedGeometry::kMaxFewRows;
  constexpr std::int64_t kTable = kKeyStreams * (kStreamSteps + kPrefetchSteps);
  few_queries_ = floats(kFew * spec.head_dim);
  few_scores_ = floats(kFew * kStreamKeys);
  few_bias_ = floats(kStreamKeys);
  few_rescale_ = floats(kFew);
  few_maximum_ = floats(states * kFew);
  few_sum_ = floats(states * kFew);
  few_live_ = floats(states * kFew);
  few_context_ = floats(states * kFew * value_head_dim_);
  few_key_ = layout_.per_worker<const std::byte*>(kTable);
  few_value_ = layout_.per_worker<const std::byte*>(kTable);
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

SoftmaxState CachedWorkspace::few_state(std::byte* workspace, int worker, std::int64_t level) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  const std::int64_t rows = level * CachedGeometry::kMaxFewRows;
  return {.maximum = few_maximum_.in(region) + rows,
          .sum = few_sum_.in(region) + rows,
          .live = few_live_.in(region) + rows,
          .context = few_context_.in(region) + rows * value_head_dim_};
}

FewScratch CachedWorkspace::few_scratch(std::byte* workspace, int worker) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  return {.queries = few_queries_.in(region),
          .scores = few_scores_.in(region),
          .bias = few_bias_.in(region),
          .rescale = few_rescale_.in(region),
          .key = few_key_.in(region),
          .value = few_value_.in(region)};
}

}  // namespace headway
