// Filling in and checking a spec. Knows no tensors.
#pragma once

#include "headway/attention.h"

namespace headway {

/// The spec with its defaults filled in. Throws kInvalidArgument naming the field and both numbers for what cannot be
/// right, kUnsupported for an element type this build does not compute in.
AttentionSpec complete_spec(const AttentionSpec& spec);

/// True when the spec lets args.offsets be given: for Causal::kOffset (where they must be), or a window of its own.
bool takes_offsets(const AttentionSpec& spec);

}  // namespace headway
