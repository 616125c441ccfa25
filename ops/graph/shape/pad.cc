// Pad: a tensor inside a larger one, or a smaller one where a pad is negative. Constant pads are filled and the rest is
// copied once; the other modes compute for each element where it comes from. Knows no element type.
#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// Elements added in front of and behind each axis of the input.
struct Pads {
  std::int64_t before[kMaxRank] = {};
  std::int64_t after[kMaxRank] = {};
};

Pads pads_of(const char* op, const std::vector<std::int64_t>& pads, const std::vector<std::int64_t>& named,
             std::size_t rank) {
  const std::vector<int> axes = normalised_axes(op, named, rank);
  require(pads.size() == 2 * axes.size(), op, " has ", pads.size(), " pads, expected ", 2 * axes.size(),
          ", two for each axis");
  Pads result;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result.before[axes[i]] = pads[i];
    result.after[axes[i]] = pads[i + axes.size()];
  }
  return result;
}

std::vector<std::int64_t> all_axes(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  for (std::size_t a = 0; a < rank; ++a) axes[a] = static_cast<std::int64_t>(a);
  return axes;
}

Pads pads_of(const char* op, const NodeContext& node) {
  const auto rank = static_cast<std::size_t>(node.inputs[0].dims.rank());
  return pads_of(op, integers_of(node, 1, "pads"), has_input(node, 3) ? known_integers(node, 3) : all_axes(rank), rank);
}

std::string mode_of(const char* op, const Attributes& attributes) {
  const std::string mode = attributes.text("mode", "constant");
  require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", op, " mode is '", mode,
          "', expected constant, reflect, edge or wrap");
  return mode;
}

/// size + before + after, whatever the order in which a sum of two overflows; nullopt when it is negative or does not
/// fit.
std::optional<std::int64_t> padded_size(std::int64_t size, std::int64_t before, std::int64_t after) {
  const std::int64_t low = std::min(before, after), high = std::max(before, after);
  std::int64_t sum = 0;
  // The two of opposite sign first: their sum fits.
  const bool fits = low < 0 ? !__builtin_add_overflow(low + std::max<std::int64_t>(high, 0), size, &sum) &&
                                  !__builtin_add_overflow(sum, std::min<std::int64_t>(high, 0), &sum)
                            : !__builtin_add_overflow(low, high, &sum) && !__builtin_add_overflow(sum, size, &sum);
  return fits && sum >= 0 ? std::optional(sum) : std::nullopt;
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 4);
  const std::string mode = mode_of(op, node.attributes);
  const auto lengths = integers_of(op, node, 1, "pads");
  if (has_input(node, 2)) {
    check_same_type(op, node, 0, 2);
    check_one_element(op, node, 2, "value");
  }
  std::optional<std::vector<std::int64_t>> axes;
  if (has_input(node, 3)) axes = known_integers(op, node, 3, "axes");
  ValueInfo out = like(node.inputs[0]);
  if (!out.dims) return {out};
  DimList& dims = *out.dims;
  if (!has_input(node, 3)) axes = all_axes(dims.size());
  if (!lengths || !axes) {
    dims = node.unknown_sizes(dims.size());
    return {out};
  }
  require(dims.size() <= kMaxRank, op, " input 0 has rank ", dims.size(), ", at most ", kMaxRank, " is supported");
  const Pads pads = pads_of(op, *lengths, *axes, dims.size());
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const std::int64_t before = pads.before[a];
    const std::int64_t after = pads.after[a];
    if (before == 0 && after == 0) continue;
    const Dim& size = dims[a];
    const std::optional<std::int64_t> padded = size.is_number() ? padded_size(size.factor, before, after) : 0;
    require(padded.has_value(), op, " axis ", a, " of ", *node.inputs[0].dims, " with pads ", before, " and ", after,
            " has no size, expected 0 or more");
    const bool looks_up = mode != "constant" && size.is(0);
    require(!looks_up || *padded == 0, op, " in mode ", mode, " has 0 elements in axis ", a, ", expected 1 or more");
    dims[a] = size.is_number() ? Dim(*padded) : node.unknown_size(static_cast<std::int64_t>(a));
  }
  return {out};
}

std::unique_ptr<NodePlan> plan_constant(const Pads& pads) {
  return make_plan([pads](const RunContext& context, Inputs inputs, Outputs outputs) {
    const std::int64_t zero = 0;  // all bits 0: a zero of every type
    const TensorView& out = outputs[0];
    const ConstTensorView value = optional_input(inputs, 2);
    const ConstTensorView fill(value ? value.data : reinterpret_cast<const std::byte*>(&zero), out.type, {});
    parallel_copy(fill.broadcast_to(out.dims), out, context.threads);
    ConstTensorView from = inputs[0];
    TensorView to = out;
    for (int a = 0; a < out.rank(); ++a) {
      // A pad that takes away the whole axis may be as low as numbers go.
      if (pads.before[a] <= -from.dims[a] && pads.before[a] < 0) return;
      const std::int64_t begin = std::max<std::int64_t>(0, -pads.before[a]);
      const std::int64_t end = std::min(from.dims[a], out.dims[a] - pads.before[a]);
      if (begin >= end) return;
      from = from.sliced(a, begin, end);
      to = to.sliced(a, begin + pads.before[a], end + pads.before[a]);
    }
    parallel_copy(from, to, context.threads);
  });
}

enum class PadMode { kEdge, kReflect, kWrap };

/// Where element i of an axis comes from; i may lie outside.
std::int64_t source_of(PadMode mode, std::int64_t i, std::int64_t length) {
  if (mode == PadMode::kEdge) return std::clamp<std::int64_t>(i, 0, length - 1);
  const std::int64_t period = mode == PadMode::kWrap ? length : std::max<std::int64_t>(1, 2 * (length - 1));
  const std::int64_t at = ((i % period) + period) % period;
  return at < length ? at : period - at;
}

std::unique_ptr<NodePlan> plan_lookup(const char* op, const NodeContext& node, const std::string& mode_name,
                                      const Pads& pads, const Dims& out_dims) {
  const Dims& dims = node.inputs[0].dims;
  const PadMode mode = mode_name == "edge" ? PadMode::kEdge : mode_name == "wrap" ? PadMode::kWrap : PadMode::kReflect;
  Dims before = dims;
  for (int a = 0; a < dims.rank(); ++a) {
    require(dims[a] > 0 || out_dims[a] == 0, op, " in mode ", mode_name, " has 0 elements in axis ", a,
            ", expected 1 or more");
    // Far beyond any axis, and its distance to every element is still a number.
    constexpr std::int64_t kFar = std::int64_t{1} << 62;
    before[a] = std::clamp(pads.before[a], -kFar, kFar);
  }
  return make_plan([=](const RunContext&, Inputs inputs, Outputs outputs) {
    const TensorView& out = outputs[0];
    const ConstTensorView& in = inputs[0];
    const std::size_t bytes = size_bytes(out.type);
    const std::int64_t count = out.count();
    const int last = out.rank() - 1;
    const std::int64_t columns = last < 0 ? 1 : out.dims[last];
    std::byte* to = out.data;
    for (std::int64_t first = 0; first < count; first += columns) {
      std::int64_t offset = 0;
      std::int64_t rest = first / columns;
      for (int a = last - 1; a >= 0; --a) {
        offset += source_of(mode, rest % out.dims[a] - before[a], in.dims[a]) * in.strides[a];
        rest /= out.dims[a];
      }
      for (std::int64_t i = 0; i < columns; ++i, to += bytes) {
        const std::int64_t at = offset + (last < 0 ? 0 : source_of(mode, i - before[last], in.dims[last]));
        std::memcpy(to, in.data + at * static_cast<std::int64_t>(bytes), bytes);
      }
    }
  });
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos& outputs) {
  const std::string mode = mode_of(op, node.attributes);
  const Pads pads = pads_of(op, node);
  if (mode == "constant") return plan_constant(pads);
  return plan_lookup(op, node, mode, pads, outputs[0].dims);
}

}  // namespace

void add_pad_op(Registry* registry) { registry->add(make_op("Pad", {.infer = infer, .plan = plan})); }

}  // namespace headway
