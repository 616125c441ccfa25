// The cache as the C API describes it.
#pragma once

#include "headway/headway.h"
#include "headway/kv_cache.h"

struct headway_rotary {
  headway::RotaryTable table;
};

namespace headway::c_api {

KvCache cache_of(const headway_kv_cache* cache);

}  // namespace headway::c_api
