// Copying between views of any strides: axes are put in the order of the destination's memory and merged where both
// sides allow it, then whatever run is left innermost is copied at once. Knows nothing of what the elements mean.
#include <cstring>

#include "headway/tensor.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// Axes of a copy, outermost first. No unit axes; neighbours that are one run on both sides are one axis.
struct Loops {
  std::int64_t size[kMaxRank];
  std::int64_t from_stride[kMaxRank];
  std::int64_t to_stride[kMaxRank];
  int rank = 0;
};

Loops make_loops(const ConstTensorView& from, const TensorView& to) {
  int axes[kMaxRank];
  int num_axes = 0;
  for (int i = 0; i < to.rank(); ++i) {
    if (to.dims[i] == 1) continue;
    // Insertion sort by the destination's stride: stable and free of allocation.
    int at = num_axes++;
    for (; at > 0 && to.strides[axes[at - 1]] < to.strides[i]; --at) axes[at] = axes[at - 1];
    axes[at] = i;
  }
  Loops loops;
  for (int k = 0; k < num_axes; ++k) {
    const int i = axes[k];
    const int last = loops.rank - 1;
    if (last >= 0 && loops.from_stride[last] == from.strides[i] * from.dims[i] &&
        loops.to_stride[last] == to.strides[i] * to.dims[i]) {
      loops.size[last] *= to.dims[i];
      loops.from_stride[last] = from.strides[i];
      loops.to_stride[last] = to.strides[i];
      continue;
    }
    loops.size[loops.rank] = to.dims[i];
    loops.from_stride[loops.rank] = from.strides[i];
    loops.to_stride[loops.rank] = to.strides[i];
    ++loops.rank;
  }
  return loops;
}

/// One run of elements of a type with the right size; memcpy of one element keeps to the aliasing rules.
template <std::size_t kBytes>
void copy_steps(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
}

void copy_run(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t n,
              std::size_t bytes) {
  const auto step = static_cast<std::int64_t>(bytes);
  if (from_step == step && to_step == step) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * bytes);
  } else if (bytes == 1) {
    copy_steps<1>(from, from_step, to, to_step, n);
  } else if (bytes == 2) {
    copy_steps<2>(from, from_step, to, to_step, n);
  } else if (bytes == 4) {
    copy_steps<4>(from, from_step, to, to_step, n);
  } else {
    copy_steps<8>(from, from_step, to, to_step, n);
  }
}

void copy_axis(const Loops& loops, int axis, const std::byte* from, std::byte* to, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t from_step = loops.from_stride[axis] * size;
  const std::int64_t to_step = loops.to_stride[axis] * size;
  if (axis == loops.rank - 1) {
    copy_run(from, from_step, to, to_step, loops.size[axis], bytes);
    return;
  }
  for (std::int64_t i = 0; i < loops.size[axis]; ++i) {
    copy_axis(loops, axis + 1, from + i * from_step, to + i * to_step, bytes);
  }
}

}  // namespace

void copy_elements(const ConstTensorView& from, const TensorView& to) {
  require(from.present && to.present, "copy needs two tensors, the ", from.present ? "destination" : "source",
          " is absent");
  require(from.type == to.type, "copy from ", type_name(from.type), " to ", type_name(to.type), " needs equal types");
  require(from.dims == to.dims, "copy from ", from.dims, " to ", to.dims, " needs equal dims");
  if (to.count() == 0) return;
  const std::size_t bytes = size_bytes(to.type);
  const Loops loops = make_loops(from, to);
  if (loops.rank == 0) {
    std::memcpy(to.data, from.data, bytes);
  } else {
    copy_axis(loops, 0, from.data, to.data, bytes);
  }
}

}  // namespace headway
