// Filling in and checking a CachedAttentionSpec. Knows no tensors.
#pragma once

#include "headway/cached_attention.h"

namespace headway {

/// The spec with its defaults filled in. Throws kInvalidArgument naming the field and both numbers for what cannot be
/// right, kUnsupported for an element type this build does not compute in.
CachedAttentionSpec complete_spec(const CachedAttentionSpec& spec);

/// Whether elements of this type can be read from a cache, or be a query.
inline bool is_row_type(DataType type) {
  return type == DataType::kF32 || type == DataType::kBF16 || type == DataType::kF16;
}

}  // namespace headway
