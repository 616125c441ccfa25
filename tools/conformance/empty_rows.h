// Which rows of a result see no key, decided on the masks alone: where torch may say NaN and this library says 0.
#pragma once

#include "tools/conformance/torch_call.h"

namespace headway::tools {

/// Fills the row states of `result` for outputs [B, Sq, ·] joined over heads (or [B, H, Sq, ·] with `per_head_output`),
/// and for weights [B, Sq, ·] or [B, H, Sq, ·] by the variant. `spec` has all sizes; `args` needs only masks.
void find_empty_rows(const AttentionSpec& spec, const AttentionArgs& args, bool per_head_output, WeightsOutput weights,
                     CallResult* result);

}  // namespace headway::tools
