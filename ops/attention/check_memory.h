// Where the tensors of a run lie in memory: null pointers, outputs that overlap an input or themselves. Knows no spec.
#pragma once

#include "headway/attention.h"
#include "runtime/base/check.h"

namespace headway {

/// Throws kInvalidArgument when a view with elements has no memory.
inline void require_memory(const char* argument, const ConstTensorView& view) {
  require(view.data != nullptr || view.count() == 0, argument, " is null, expected ", view.dims, " elements");
}

/// Throws kInvalidArgument when out or scores share a byte range with another tensor, or two of their elements may be
/// the same memory. Ranges are compared, not elements: an output woven into an input's rows is refused too.
void check_aliasing(const AttentionArgs& args);

}  // namespace headway
