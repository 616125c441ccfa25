// A task of few rows per key/value head with the bits of query tiles: what a batch-invariant decode runs, so that a
// token is the same row whether it comes alone or in a chunk. Knows neither how keys are split nor what becomes of a
// state.
#pragma once

#include "ops/cached_attention/call.h"
#include "ops/cached_attention/states.h"
#include "ops/cached_attention/workspace.h"

namespace headway {

/// Rows [0, tokens · G) against keys.keys, span by span. The result has [rows] of each, in the worker's workspace.
SoftmaxState run_ordered_rows(const HeadKeys& keys, const CachedWorkspace& workspace, std::byte* memory, int worker);

}  // namespace headway
