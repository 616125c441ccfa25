// A block of keys and values as the kernels read them: in place, or packed where strides or the element type do not
// suit. Knows neither query tiles nor arithmetic.
#pragma once

#include <cstdint>

#include "ops/attention/tiled/task.h"
#include "ops/attention/visibility.h"

namespace headway {

/// Keys [begin, end) of one key/value head. With geometry.pairs a pair of bf16 stands for a float: strides are in
/// pairs, and rows of value are pairs of keys.
struct KeyBlock {
  std::int64_t begin;
  std::int64_t end;
  const float* key;  // row `begin`
  std::int64_t key_stride;
  const float* value;
  std::int64_t value_stride;
  std::int64_t panel_columns;  // as in ContextTile
  std::int64_t panel_stride;
  bool always_visible;  // no limits and no masks apply
  bool cold;            // not in the caches yet: prefetch it
};

/// Keys and values `keys` of the task's head group, packed into task.scratch where they must be.
KeyBlock read_keys_and_values(const TiledTask& task, const KeyRange& keys, bool always_visible);
/// The same without the values, which are not even read.
KeyBlock read_keys_only(const TiledTask& task, const KeyRange& keys);

}  // namespace headway
