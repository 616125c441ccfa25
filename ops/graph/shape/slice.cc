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

std::vector<AxisSlice> slices_of(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 5);
  const Dims& dims = node.inputs[0].dims;
  const std::vector<std::int64_t> begins = integers_of(op, node, 1, "starts");
  const std::vector<std::int64_t> ends = integers_of(op, node, 2, "ends");
  require(begins.size() == ends.size(), op, " has ", begins.size(), " starts and ", ends.size(),
          " ends, expected equal numbers");
  bool named = false;
  std::vector<std::int64_t> axes = integers_of(op, node, 3, "axes", &named);
  if (!named) {
    for (std::size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  bool stepped = false;
  std::vector<std::int64_t> steps = integers_of(op, node, 4, "steps", &stepped);
  if (!stepped) steps.assign(begins.size(), 1);
  require(axes.size() == begins.size(), op, " has ", axes.size(), " axes, expected ", begins.size(), " as starts");
  require(steps.size() == begins.size(), op, " has ", steps.size(), " steps, expected ", begins.size(), " as starts");
  std::vector<AxisSlice> slices;
  for (const std::int64_t length : dims) slices.push_back({0, 1, length});
  const std::vector<int> at = normalised_axes(op, axes, dims.rank());
  for (std::size_t i = 0; i < at.size(); ++i) {
    require(steps[i] != 0, op, " steps[", i, "] is 0, expected another number");
    slices[static_cast<std::size_t>(at[i])] = axis_slice(dims[at[i]], begins[i], ends[i], steps[i]);
  }
  return slices;
}

Infos infer(const char* op, const NodeContext& node) {
  Dims dims;
  for (const AxisSlice& slice : slices_of(op, node)) dims.push_back(slice.count);
  return {{node.inputs[0].type, dims}};
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

int viewed(const NodeContext& node) {
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
