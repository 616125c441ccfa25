// Spec and arguments of attention over a cache as the C API describes them.
#pragma once

#include "headway/cached_attention.h"
#include "headway/headway.h"

namespace headway::c_api {

CachedAttentionSpec spec_of(const headway_cached_attention_spec* from);
/// Query and out may be absent, as those of a layer are.
CachedAttentionArgs args_of(const headway_cached_attention_args* from);

}  // namespace headway::c_api
