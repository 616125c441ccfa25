// The arrays of a state and of a worker.
#include "ops/attention/few_queries/workspace.h"

#include <algorithm>

namespace headway {

FewQueriesWorkspace::FewQueriesWorkspace(const AttentionSpec& spec, const FewQueriesShape& shape, std::int64_t states) {
  maximum_ = state_layout_.shared<float>(shape.rows);
  sum_ = state_layout_.shared<float>(shape.rows);
  live_ = state_layout_.shared<float>(shape.rows);
  context_ = state_layout_.shared<float>(shape.rows * *spec.value_head_dim);
  states_ = layout_.shared<std::byte>(states * static_cast<std::int64_t>(state_layout_.bytes()));
  const std::int64_t width = std::max(spec.head_dim, *spec.value_head_dim);
  queries_ = layout_.per_worker<float>(shape.rows * spec.head_dim);
  scores_ = layout_.per_worker<float>(shape.rows * kBlockKeys);
  bias_ = layout_.per_worker<float>(kBlockKeys);
  rescale_ = layout_.per_worker<float>(shape.rows);
  key_ = layout_.per_worker<float>(kBlockKeys * width);
  value_ = layout_.per_worker<float>(kBlockKeys * width);
}

SplitState FewQueriesWorkspace::state(std::byte* workspace, std::int64_t index) const {
  std::byte* const at = states_.in(workspace) + state_layout_.bytes() * static_cast<std::size_t>(index);
  return {.maximum = maximum_.in(at), .sum = sum_.in(at), .live = live_.in(at), .context = context_.in(at)};
}

FewQueriesScratch FewQueriesWorkspace::scratch(std::byte* workspace, int worker) const {
  std::byte* const region = layout_.worker_region(workspace, worker);
  return {.queries = queries_.in(region),
          .scores = scores_.in(region),
          .bias = bias_.in(region),
          .rescale = rescale_.in(region),
          .key = key_.in(region),
          .value = value_.in(region)};
}

}  // namespace headway
