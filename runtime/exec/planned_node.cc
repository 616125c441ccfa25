// Inference and planning of one node.
#include "runtime/exec/planned_node.h"

namespace headway {

PlannedNode plan_node(const Node& node, const Operator& op, std::span<const TensorInfo> inputs,
                      std::span<const ConstTensorView> constants) {
  const NodeContext context{node.attributes, inputs, constants, static_cast<int>(node.outputs.size())};
  return name_errors(node, [&] {
    PlannedNode planned;
    planned.outputs = op.infer(context);
    if (planned.outputs.size() != node.outputs.size()) {
      fail(ErrorCode::kInternal, "operator inferred ", planned.outputs.size(), " outputs, expected ",
           node.outputs.size());
    }
    for (const TensorInfo& output : planned.outputs) {
      if (output.present) element_count(output.dims);
    }
    planned.plan = op.plan(context, planned.outputs);
    if (planned.plan == nullptr) fail(ErrorCode::kInternal, "operator made no plan");
    return planned;
  });
}

}  // namespace headway
