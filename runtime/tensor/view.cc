// Views of views: every method is arithmetic on dims and strides, none touches an element.
#include "headway/tensor.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

void check_axis(int axis, const Dims& dims) {
  require(axis >= 0 && axis < dims.rank(), "axis is ", axis, ", expected 0 or more and less than the rank ",
          dims.rank());
}

}  // namespace

template <class Byte>
bool BasicTensorView<Byte>::is_contiguous() const {
  if (count() == 0) return true;
  std::int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (dims[i] == 1) continue;  // never multiplied by anything but 0
    if (strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::permuted(std::initializer_list<int> order) const {
  require(static_cast<int>(order.size()) == rank(), "permutation has ", order.size(), " axes, expected rank ", rank());
  BasicTensorView result = *this;
  bool seen[kMaxRank] = {};
  int to = 0;
  for (int from : order) {
    check_axis(from, dims);
    require(!seen[from], "permutation names axis ", from, " twice");
    seen[from] = true;
    result.dims[to] = dims[from];
    result.strides[to] = strides[from];
    ++to;
  }
  return result;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::sliced(int axis, std::int64_t begin, std::int64_t end) const {
  check_axis(axis, dims);
  require(begin >= 0 && begin <= end && end <= dims[axis], "slice [", begin, ", ", end, ") does not fit axis ", axis,
          " of ", dims[axis], " elements");
  BasicTensorView result = *this;
  result.dims[axis] = end - begin;
  // An empty slice keeps the pointer: one past a strided axis may lie outside the allocation.
  if (begin < end && data) result.data += begin * strides[axis] * static_cast<std::int64_t>(size_bytes(type));
  return result;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::selected(int axis, std::int64_t index) const {
  check_axis(axis, dims);
  require(index >= 0 && index < dims[axis], "index ", index, " does not fit axis ", axis, " of ", dims[axis],
          " elements");
  BasicTensorView result = sliced(axis, index, index + 1);
  result.dims = {};
  result.strides = {};
  for (int i = 0; i < rank(); ++i) {
    if (i == axis) continue;
    result.dims.push_back(dims[i]);
    result.strides.push_back(strides[i]);
  }
  return result;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::reshaped(const Dims& new_dims) const {
  require(element_count(new_dims) == count(), "reshape from ", dims, " to ", new_dims,
          " changes the element count from ", count(), " to ", element_count(new_dims));
  require(is_contiguous(), "reshape from ", dims, " to ", new_dims, " needs a contiguous view, strides are ", strides);
  BasicTensorView result(data, type, new_dims);
  result.present = present;
  return result;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::split_axis(int axis, std::int64_t outer) const {
  check_axis(axis, dims);
  require(outer >= 1 && dims[axis] % outer == 0, "axis ", axis, " of ", dims[axis], " elements does not split into ",
          outer, " equal parts");
  const std::int64_t inner = dims[axis] / outer;
  BasicTensorView result = *this;
  result.dims = {};
  result.strides = {};
  for (int i = 0; i < rank(); ++i) {
    if (i == axis) {
      result.dims.push_back(outer);
      result.strides.push_back(inner * strides[i]);
    }
    result.dims.push_back(i == axis ? inner : dims[i]);
    result.strides.push_back(strides[i]);
  }
  return result;
}

template <class Byte>
BasicTensorView<Byte> BasicTensorView<Byte>::broadcast_to(const Dims& target) const {
  require(rank() <= target.rank(), "broadcast from ", dims, " to ", target, " lowers the rank from ", rank(), " to ",
          target.rank());
  element_count(target);
  BasicTensorView result = *this;
  result.dims = target;
  result.strides = target;
  const int added = target.rank() - rank();
  for (int i = 0; i < target.rank(); ++i) {
    const int from = i - added;
    const bool same = from >= 0 && dims[from] == target[i];
    require(same || from < 0 || dims[from] == 1, "broadcast from ", dims, " to ", target, ": axis ", from, " is ",
            from < 0 ? 0 : dims[from], ", expected 1 or ", target[i]);
    result.strides[i] = same ? strides[from] : 0;
  }
  return result;
}

template struct BasicTensorView<std::byte>;
template struct BasicTensorView<const std::byte>;

}  // namespace headway
