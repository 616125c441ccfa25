// Where the tensors of a run lie in memory: null pointers, outputs that overlap an input or themselves. Knows no spec.
#pragma once

#include "headway/attention.h"
#include "runtime/base/check.h"

namespace headway {

/// Throws kInvalidArgument when a view with elements has no memory.
inline void require_memory(const char* argument, const ConstTensorView& view) {
  require(view.data != nullptr || view.count() == 0, argument, " is null, expected ", view.dims, " elements");
}

/// Throws kInvalidArgument when out, scores or log_sum_exp may share memory with another tensor or with themselves.
/// Columns of their own in the rows of one buffer [T, Q | K | V | O] are apart.
void check_aliasing(const AttentionArgs& args);

}  // namespace headway
