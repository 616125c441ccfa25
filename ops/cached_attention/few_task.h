// A task of few rows per key/value head, as in decoding: each key and value is read once for all of them, in four
// streams. Fills the state of each row. Knows neither how keys are split nor what becomes of a state.
#pragma once

#include "ops/cached_attention/call.h"
#include "ops/cached_attention/states.h"
#include "ops/cached_attention/workspace.h"

namespace headway {

/// Rows [0, tokens · G) against keys.keys; `state` has [rows] of each.
void run_few_rows(const HeadKeys& keys, const FewScratch& scratch, const SoftmaxState& state);

}  // namespace headway
