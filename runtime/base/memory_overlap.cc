// Byte ranges, and byte ranges within a row. See memory_overlap.h.
#include "runtime/base/memory_overlap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "runtime/base/check.h"

namespace headway {
namespace {

std::int64_t stride_bytes(const ConstTensorView& view, int axis) {
  return view.strides[axis] * static_cast<std::int64_t>(size_bytes(view.type));
}

/// What the axes reach whose stride is no multiple of `row`, from the address of the first element; 0: all axes.
ByteRange reach(const ConstTensorView& view, std::int64_t row) {
  ByteRange range{0, static_cast<std::int64_t>(size_bytes(view.type))};
  for (int axis = 0; axis < view.rank(); ++axis) {
    const std::int64_t stride = stride_bytes(view, axis);
    if (row != 0 && stride % row == 0) continue;
    const std::int64_t last = (view.dims[axis] - 1) * stride;
    (last < 0 ? range.begin : range.end) += last;
  }
  return range;
}

ByteRange addresses(const ConstTensorView& view, std::int64_t row) {
  const ByteRange range = reach(view, row);
  const auto base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view.data));
  return {base + range.begin, base + range.end};
}

/// Whether both keep to columns of their own in rows of `row` bytes.
bool side_by_side(const ConstTensorView& a, const ConstTensorView& b, std::int64_t row) {
  const ByteRange of_a = addresses(a, row), of_b = addresses(b, row);
  // Where b's columns begin after those of a, modulo the row: between a's end and a's next begin they must fit.
  const std::int64_t offset = ((of_b.begin - of_a.begin) % row + row) % row;
  return of_a.size() <= offset && offset + of_b.size() <= row;
}

/// The same for a row as long as any stride of `rows`.
bool side_by_side_in_a_row_of(const ConstTensorView& rows, const ConstTensorView& a, const ConstTensorView& b) {
  for (int axis = 0; axis < rows.rank(); ++axis) {
    const std::int64_t row = std::abs(stride_bytes(rows, axis));
    if (rows.dims[axis] > 1 && row > 0 && side_by_side(a, b, row)) return true;
  }
  return false;
}

}  // namespace

ByteRange byte_range(const ConstTensorView& view) {
  constexpr ByteRange kNothing{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  return !view || view.count() == 0 ? kNothing : addresses(view, 0);
}

bool may_overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (!byte_range(a).meets(byte_range(b))) return false;
  return !side_by_side_in_a_row_of(a, a, b) && !side_by_side_in_a_row_of(b, a, b);
}

bool begins_with(const ConstTensorView& whole, const ConstTensorView& part) {
  const int rank = whole.rank();
  if (!whole || !part || whole.data != part.data || whole.type != part.type || part.rank() != rank) return false;
  if (whole.strides.rank() != rank || part.strides.rank() != rank) return false;
  if (part.count() == 0 || (rank > 0 && whole.dims[rank - 1] > 1 && whole.strides[rank - 1] != 1)) return false;
  int longer = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (part.dims[axis] > whole.dims[axis]) return false;
    if (part.dims[axis] < whole.dims[axis]) ++longer;
    if (part.dims[axis] > 1 && part.strides[axis] != whole.strides[axis]) return false;
  }
  return longer <= 1;
}

void check_apart(const char* output, const ConstTensorView& written, const char* other, const ConstTensorView& view) {
  if (!may_overlap(written, view)) return;
  const ByteRange a = addresses(written, 0), b = addresses(view, 0);
  fail(ErrorCode::kInvalidArgument, output, " overlaps ", other, ": of ", a.size(), " bytes written, ",
       std::min(a.end, b.end) - std::max(a.begin, b.begin), " are shared");
}

void check_no_self_overlap(const char* output, const ConstTensorView& view) {
  if (!view || view.count() == 0) return;
  // Axes by growing stride, inserted one by one: each stride exceeds everything that the finer axes reach.
  int axes[kMaxRank];
  int used = 0;
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.dims[axis] <= 1) continue;
    int at = used++;
    for (; at > 0 && std::abs(view.strides[axes[at - 1]]) > std::abs(view.strides[axis]); --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  std::int64_t reached = 0;
  for (int i = 0; i < used; ++i) {
    const std::int64_t stride = std::abs(view.strides[axes[i]]);
    require(stride > reached, output, " overlaps itself: axis ", axes[i], " has stride ", stride,
            ", expected at least ", reached + 1);
    reached += (view.dims[axes[i]] - 1) * stride;
  }
}

}  // namespace headway
