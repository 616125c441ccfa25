// Slice: a strided part of a tensor, steps of either sign, copied once. Decides how bounds are clamped; knows no
// element type.
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// Where one axis begins, its step, and how many elements are taken.
struct AxisSlice {
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

/// As ONNX has it: negative bounds count from the end, bounds outside are clamped, the start to [0, length] or, with a
/// negative step, to [0, length − 1], where numpy would let it fall to −1 and take nothing.
AxisSlice axis_slice(std::int64_t length, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (length == 0) return {0, 1, 0};
  begin = std::clamp<std::int64_t>(begin < 0 ? begin + length : begin, 0, step > 0 ? length : length - 1);
  end = step > 0 ? std::clamp<std::int64_t>(end < 0 ? end + length : end, 0, length)
                 : std::clamp<std::int64_t>(end < 0 ? end + length : end, -1, length - 1);
  // A magnitude in unsigned numbers: the lowest step has no negative.
  const std::uint64_t distance = step > 0 ? static_cast<std::uint64_t>(std::max<std::int64_t>(end - begin, 0))
                                          : static_cast<std::uint64_t>(std::max<std::int64_t>(begin - end, 0));
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const auto count = static_cast<std::int64_t>(distance / stride + (distance % stride != 0 ? 1 : 0));
  return {begin, count > 1 ? step : 1, count};
}

/// What a node says of its axes, with as many entries each.
struct Bounds {
  std::vector<std::int64_t> begins, ends, axes, steps;
};

std::vector<std::int64_t> first_axes(std::size_t count) {
  std::vector<std::int64_t> axes(count);
  for (std::size_t i = 0; i < count; ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

std::vector<AxisSlice> slices_of(const char* op, const NodeContext& node) {
  const Dims& dims = node.inputs[0].dims;
  Bounds b{integers_of(node, 1, "starts"), integers_of(node, 2, "ends"), {}, {}};
  bool named = false;
  b.axes = integers_of(node, 3, "axes", &named);
  if (!named) b.axes = first_axes(b.begins.size());
  bool stepped = false;
  b.steps = integers_of(node, 4, "steps", &stepped);
  if (!stepped) b.steps.assign(b.begins.size(), 1);
  std::vector<AxisSlice> slices;
  for (const std::int64_t length : dims) slices.push_back({0, 1, length});
  const std::vector<int> at = normalised_axes(op, b.axes, static_cast<std::size_t>(dims.rank()));
  for (std::size_t i = 0; i < at.size(); ++i) {
    slices[static_cast<std::size_t>(at[i])] = axis_slice(dims[at[i]], b.begins[i], b.ends[i], b.steps[i]);
  }
  return slices;
}

/// Elements [0, end) of an axis where the end or the axis is not a number.
Dim cut_size(const InferContext& node, std::size_t axis, const Dim& size, const Dim* begin, const Dim* end) {
  constexpr std::int64_t kToTheEnd = INT32_MAX;
  if (begin != nullptr && end != nullptr && begin->is(0)) {
    if (end->is_number() && end->factor >= kToTheEnd) return size;
    if (is_size(node, *end)) return node.unknowns->smaller(*end, size);
  }
  return node.unknown_size(static_cast<std::int64_t>(axis));
}

/// Bounds as they are known; those of the lists that are missing are not.
struct KnownBounds {
  std::optional<DimList> begins, ends;
  std::optional<std::vector<std::int64_t>> axes, steps;
  std::optional<std::size_t> count;
};

std::optional<DimList> bounds_of(const char* op, const InferContext& node, std::size_t input, const char* what) {
  if (has_input(node, input)) return elements_of(op, node, input, what);
  const std::vector<std::int64_t> given = node.attributes.integers(what);
  return DimList(given.begin(), given.end());
}

KnownBounds known_bounds(const char* op, const InferContext& node) {
  KnownBounds b;
  b.begins = bounds_of(op, node, 1, "starts");
  b.ends = bounds_of(op, node, 2, "ends");
  if (b.begins && b.ends) {
    require(b.begins->size() == b.ends->size(), op, " has ", b.begins->size(), " starts and ", b.ends->size(),
            " ends, expected equal numbers");
  }
  if (b.begins) b.count = b.begins->size();
  if (!b.count && b.ends) b.count = b.ends->size();
  bool named = false;
  b.axes = integers_of(op, node, 3, "axes", &named);
  bool stepped = false;
  b.steps = integers_of(op, node, 4, "steps", &stepped);
  if (!b.count && named && b.axes) b.count = b.axes->size();
  if (!b.count) return b;
  if (!named) b.axes = first_axes(*b.count);
  if (!stepped) b.steps = std::vector<std::int64_t>(*b.count, 1);
  require(!b.axes || b.axes->size() == *b.count, op, " has ", b.axes ? b.axes->size() : 0, " axes, expected ", *b.count,
          " as starts");
  require(!b.steps || b.steps->size() == *b.count, op, " has ", b.steps ? b.steps->size() : 0, " steps, expected ",
          *b.count, " as starts");
  for (std::size_t i = 0; b.steps && i < b.steps->size(); ++i) {
    require((*b.steps)[i] != 0, op, " steps[", i, "] is 0, expected another number");
  }
  return b;
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 5);
  const KnownBounds b = known_bounds(op, node);
  ValueInfo out = like(node.inputs[0]);
  if (!out.dims) return {out};
  DimList& dims = *out.dims;
  if (!b.count || !b.axes) {
    dims = node.unknown_sizes(dims.size());
    return {out};
  }
  const std::vector<int> at = normalised_axes(op, *b.axes, dims.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto axis = static_cast<std::size_t>(at[i]);
    const Dim* begin = b.begins ? &(*b.begins)[i] : nullptr;
    const Dim* end = b.ends ? &(*b.ends)[i] : nullptr;
    const bool bounded = begin != nullptr && end != nullptr && begin->is_number() && end->is_number();
    if (!bounded || !b.steps || !dims[axis].is_number()) {
      const bool forwards = b.steps && (*b.steps)[i] == 1;
      dims[axis] = cut_size(node, axis, dims[axis], forwards ? begin : nullptr, end);
      continue;
    }
    const AxisSlice slice = axis_slice(dims[axis].factor, begin->factor, end->factor, (*b.steps)[i]);
    dims[axis] = slice.count;
    if (!node.inputs[0].elements || dims.size() != 1) continue;
    out.elements.emplace();
    for (std::int64_t k = 0; k < slice.count; ++k) {
      out.elements->push_back((*node.inputs[0].elements)[static_cast<std::size_t>(slice.begin + k * slice.step)]);
    }
  }
  if (at.empty()) out.elements = node.inputs[0].elements;
  return {out};
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos&) {
  return make_plan([slices = slices_of(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    const TensorView& out = outputs[0];
    if (out.count() == 0) return;
    ConstTensorView from = inputs[0];
    from.dims = out.dims;
    for (int a = 0; a < out.rank(); ++a) {
      const AxisSlice& slice = slices[static_cast<std::size_t>(a)];
      from.data += slice.begin * from.strides[a] * static_cast<std::int64_t>(size_bytes(from.type));
      from.strides[a] *= slice.step;
    }
    parallel_copy(from, out, context.threads);
  });
}

int viewed(const NodeContext& node, const Infos&) {
  const std::vector<AxisSlice> slices = slices_of("Slice", node);
  for (int a = 0; a < node.inputs[0].dims.rank(); ++a) {
    const AxisSlice& slice = slices[static_cast<std::size_t>(a)];
    if (slice.count != node.inputs[0].dims[a] || slice.step != 1 || slice.begin != 0) return -1;
  }
  return 0;
}

}  // namespace

void add_slice_op(Registry* registry) {
  registry->add(make_op("Slice", {.infer = infer, .plan = plan, .aliased_input = viewed}));
}

}  // namespace headway
