// A block of keys and values as the kernels read them: in place, or packed where strides or the element type do not
// suit. Knows neither groups nor arithmetic.
#pragma once

#include "ops/attention/tiled/block.h"

namespace headway {

/// A worker's scratch: buffers().key and buffers().value floats.
struct KeyScratch {
  float* key;
  float* value;
};

/// Keys and values `keys` of the task's unit. `tail`: they are the visible tail.
KeyBlock keys_and_values(const TiledTask& task, const KeyRange& keys, bool tail, const KeyScratch& scratch);
/// The same without the values, which are not even read.
KeyBlock keys_only(const TiledTask& task, const KeyRange& keys, const KeyScratch& scratch);

}  // namespace headway
