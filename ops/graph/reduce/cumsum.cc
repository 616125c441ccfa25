// CumSum: running sums along an axis, forwards or backwards, with or without the element itself. Integers wrap; halves
// are summed in f32.
#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

int axis_of(const char* op, const std::vector<std::int64_t>& axis, std::size_t rank) {
  require(axis.size() == 1, op, " axis has ", axis.size(), " elements, expected 1");
  return normalised_axis(op, axis[0], rank);
}

/// One line of `length` elements, `step` elements apart.
template <class T>
void sum_line(const T* x, T* y, std::int64_t length, std::int64_t step, bool exclusive) {
  // Unsigned, where overflow is defined.
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, ComputeType<T>>;
  Sum sum{};
  for (std::int64_t i = 0; i < length; ++i) {
    const Sum value = static_cast<Sum>(widen(x[i * step]));
    const Sum next = sum + value;
    y[i * step] = convert<T>(exclusive ? sum : next);
    sum = next;
  }
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos&) {
  const int axis = axis_of(op, known_integers(node, 1), static_cast<std::size_t>(node.inputs[0].dims.rank()));
  const bool exclusive = node.attributes.integer("exclusive", 0) != 0;
  const bool reverse = node.attributes.integer("reverse", 0) != 0;
  return make_plan([=](const RunContext&, Inputs inputs, Outputs outputs) {
    const std::int64_t count = outputs[0].count();
    if (count == 0) return;
    const std::int64_t length = outputs[0].dims[axis];
    const std::int64_t step = outputs[0].strides[axis];
    visit_type(outputs[0].type, [&](auto kind) {
      using T = decltype(kind);
      if constexpr (!std::is_same_v<T, bool>) {
        for (std::int64_t line = 0; line < count / length; ++line) {
          const std::int64_t first = line / step * step * length + line % step + (reverse ? (length - 1) * step : 0);
          sum_line(inputs[0].as<T>() + first, outputs[0].as<T>() + first, length, reverse ? -step : step, exclusive);
        }
      }
    });
  });
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 0, kNumericTypes);
  const auto axis = known_integers(op, node, 1, "axis");
  if (axis && node.inputs[0].dims) axis_of(op, *axis, node.inputs[0].dims->size());
  for (const char* const flag : {"exclusive", "reverse"}) node.attributes.integer(flag, 0);
  return {like(node.inputs[0])};
}

}  // namespace

void add_cumsum_op(Registry* registry) { registry->add(make_op("CumSum", {.infer = infer, .plan = plan})); }

}  // namespace headway
