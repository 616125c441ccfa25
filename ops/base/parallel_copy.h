// copy() on several threads. Decides the split, by shape alone. Knows no element type.
#pragma once

#include <algorithm>

#include "headway/tensor.h"
#include "headway/threads.h"
#include "ops/base/layout.h"

namespace headway {

/// Copies between views of the same dims and type, any strides. Tasks are ranges of the outermost axis that is longer
/// than 1.
inline void parallel_copy(const ConstTensorView& from, const TensorView& to, const Threads& threads) {
  constexpr std::int64_t kTaskElements = 32768;
  const std::int64_t count = to.count();
  int axis = 0;
  while (axis < to.rank() && to.dims[axis] == 1) ++axis;
  if (count <= kTaskElements || axis == to.rank()) return copy_elements(from, to);
  const std::int64_t length = to.dims[axis];
  const std::int64_t step = std::max<std::int64_t>(1, length * kTaskElements / count);
  threads.parallel_for(ceil_div(length, step), [&](std::int64_t task, int) {
    const std::int64_t begin = task * step;
    const std::int64_t end = std::min(length, begin + step);
    copy_elements(from.sliced(axis, begin, end), to.sliced(axis, begin, end));
  });
}

}  // namespace headway
