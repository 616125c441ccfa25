// From the heads that attention reads upwards to the projection that made them, through whatever only moves axes:
//
//   x·W + b [B, S, N] ── Reshape ── heads
//   x·W + b [S, B, 3·N] ── Reshape ── Transpose ── Gather ── Reshape [S, B·H, D] ── Transpose ── Reshape ── heads
//
// Every axis on the way is known by the parts of [B, H, S, D] that it holds. Decides whether the heads are columns of
// one projection that lie side by side.
#pragma once

#include <optional>
#include <vector>

#include "ops/fusion/attention/projection.h"

namespace headway::fusion {

struct TracedHeads {
  Projection projection;    ///< of these heads' columns alone
  bool batch_first = true;  ///< its input is [B, S, E]; else [S, B, E]
  std::int64_t heads = 0;
  std::int64_t width = 0;
  /// Sizes that a Reshape on the way names as numbers although the tokens' own are open: the only ones that run.
  std::optional<std::int64_t> only_batch = {}, only_length = {};
};

/// Axis i of [B, H, S, D] is axis axes[i] of `value`. nullopt when it comes from no projection.
std::optional<TracedHeads> trace_heads(const Draft& draft, Facts* facts, ValueId value,
                                       const std::vector<std::int64_t>& axes);

}  // namespace headway::fusion
