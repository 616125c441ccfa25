// Where strided views lie in memory: whether one that is written shares an element with another, or with itself. Knows
// no operator.
#pragma once

#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// Half-open, in bytes.
struct ByteRange {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

/// From the first byte of a view's elements to the end of the last; empty, meeting nothing, without elements. Views
/// whose ranges do not meet are apart, which is a cheaper question than may_overlap().
ByteRange byte_range(const ConstTensorView& view);

/// Whether an element of `a` may lie on one of `b`. Views whose rows lie side by side in the rows of one buffer,
/// columns of their own each, share nothing; nor does one without elements. Other views are taken to fill the bytes
/// from their first element to their last.
bool may_overlap(const ConstTensorView& a, const ConstTensorView& b);

/// Whether `part` is what `whole` begins with along one axis, or all of it: the same first element, type and strides,
/// the innermost 1, and the same dims but for one. Views without elements are apart from each other instead.
bool begins_with(const ConstTensorView& whole, const ConstTensorView& part);

/// Throws kInvalidArgument naming both when `written` may share memory with `view`.
void check_apart(const char* output, const ConstTensorView& written, const char* other, const ConstTensorView& view);

/// Throws kInvalidArgument when two elements of `output` may be the same memory.
void check_no_self_overlap(const char* output, const ConstTensorView& view);

}  // namespace headway
