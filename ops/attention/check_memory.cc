// Byte ranges and overlap of strided views. Knows nothing of attention but the names of its arguments.
#include "ops/attention/check_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "runtime/base/check.h"

namespace headway {
namespace {

/// Half-open range of addresses; empty when begin == end.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

ByteRange byte_range(const ConstTensorView& view) {
  if (!view || view.count() == 0) return {};
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (int axis = 0; axis < view.rank(); ++axis) {
    const std::int64_t reach = (view.dims[axis] - 1) * view.strides[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(view.type));
  const auto base = reinterpret_cast<std::uintptr_t>(view.data);
  return {base + static_cast<std::uintptr_t>(lowest * element_bytes),
          base + static_cast<std::uintptr_t>((highest + 1) * element_bytes)};
}

void require_apart(const char* output, const ByteRange& written, const char* other, const ConstTensorView& view) {
  const ByteRange range = byte_range(view);
  if (written.begin == written.end || range.begin == range.end) return;
  require(written.end <= range.begin || range.end <= written.begin, output, " overlaps ", other, ": of ",
          written.end - written.begin, " bytes written, ",
          std::min(written.end, range.end) - std::max(written.begin, range.begin), " are shared");
}

/// Distinct elements at distinct addresses: each stride exceeds everything that the finer axes reach.
void require_no_self_overlap(const char* output, const TensorView& view) {
  if (!view || view.count() == 0) return;
  // Axes by growing stride, inserted one by one: at most kMaxRank of them.
  std::array<int, kMaxRank> axes{};
  std::size_t used = 0;
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.dims[axis] <= 1) continue;
    std::size_t at = used++;
    for (; at > 0 && std::abs(view.strides[axes[at - 1]]) > std::abs(view.strides[axis]); --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const int axis = axes[i];
    const std::int64_t stride = std::abs(view.strides[axis]);
    require(stride > reach, output, " overlaps itself: axis ", axis, " has stride ", stride, ", expected at least ",
            reach + 1);
    reach += (view.dims[axis] - 1) * stride;
  }
}

}  // namespace

void check_aliasing(const AttentionArgs& args) {
  const ByteRange out = byte_range(args.out);
  const ByteRange scores = byte_range(args.scores);
  const struct {
    const char* name;
    const ConstTensorView& view;
  } inputs[] = {{"query", args.query},    {"key", args.key},           {"value", args.value},
                {"mask", args.mask},      {"key_mask", args.key_mask}, {"key_lengths", args.key_lengths},
                {"offsets", args.offsets}};
  require_apart("scores", scores, "out", args.out);
  for (const auto& input : inputs) {
    require_apart("out", out, input.name, input.view);
    require_apart("scores", scores, input.name, input.view);
  }
  require_no_self_overlap("out", args.out);
  require_no_self_overlap("scores", args.scores);
}

}  // namespace headway
