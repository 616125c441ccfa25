// Trilu: the upper or lower triangle of the last two axes, zeros elsewhere. Knows no element type: a zero is all bits
// 0.
#include <cstring>

#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 2);
  const ValueInfo& x = node.inputs[0];
  require(!x.dims || x.rank() >= 2, op, " input has rank ", x.rank(), ", expected 2 or more");
  if (has_input(node, 1)) {
    check_type(op, node, 1, {DataType::kI64, DataType::kI32});
    check_one_element(op, node, 1, "k");
  }
  node.attributes.integer("upper", 1);
  return {like(x)};
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos&) {
  const bool upper = node.attributes.integer("upper", 1) != 0;
  return make_plan([op, upper](const RunContext&, Inputs inputs, Outputs outputs) {
    const ConstTensorView diagonal = optional_input(inputs, 1);
    const Dims& dims = outputs[0].dims;
    const std::int64_t count = outputs[0].count();
    if (count == 0) return;
    const std::int64_t columns = dims.back();
    const std::int64_t rows = dims[dims.rank() - 2];
    // Beyond the matrix every diagonal is alike, which keeps the sums below small.
    const std::int64_t k = std::clamp(diagonal ? integer_at_run(op, diagonal, "k") : 0, -rows - 1, columns + 1);
    const auto bytes = static_cast<std::int64_t>(size_bytes(outputs[0].type));
    for (std::int64_t row = 0; row < count / columns; ++row) {
      // The upper triangle begins at column row + k; the lower one ends behind it.
      const std::int64_t border = std::clamp<std::int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
      const std::byte* from = inputs[0].data + row * columns * bytes;
      std::byte* to = outputs[0].data + row * columns * bytes;
      std::memcpy(to, from, static_cast<std::size_t>(columns * bytes));
      std::memset(to + (upper ? 0 : border * bytes), 0,
                  static_cast<std::size_t>((upper ? border : columns - border) * bytes));
    }
  });
}

}  // namespace

void add_trilu_op(Registry* registry) { registry->add(make_op("Trilu", {.infer = infer, .plan = plan})); }

}  // namespace headway
