// Where strided views lie in memory: whether one that is written shares an element with another, or with itself. Knows
// no operator.
#pragma once

#include "headway/tensor.h"

namespace headway {

/// Whether an element of `a` may lie on one of `b`. Views whose rows lie side by side in the rows of one buffer,
/// columns of their own each, share nothing; nor does one without elements. Other views are taken to fill the bytes
/// from their first element to their last.
bool may_overlap(const ConstTensorView& a, const ConstTensorView& b);

/// Throws kInvalidArgument naming both when `written` may share memory with `view`.
void check_apart(const char* output, const ConstTensorView& written, const char* other, const ConstTensorView& view);

/// Throws kInvalidArgument when two elements of `output` may be the same memory.
void check_no_self_overlap(const char* output, const ConstTensorView& view);

}  // namespace headway
