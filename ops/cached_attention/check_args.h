// Checking the tensors of a call before anything else is read or written. Knows no kernels.
#pragma once

#include "headway/cached_attention.h"

namespace headway {

/// Throws kInvalidArgument naming the argument and both numbers when `args` do not fit `spec`, which is complete. Reads
/// starts, lengths, slots and block tables, nothing else; allocates nothing unless it throws.
void check_cached_args(const CachedAttentionSpec& spec, const CachedAttentionArgs& args);

}  // namespace headway
