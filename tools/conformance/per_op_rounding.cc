// See per_op_rounding.h.
#include "tools/conformance/per_op_rounding.h"

#include <utility>
#include <vector>

namespace headway::tools {
namespace {

bool rounds_per_op(const Node& node) { return node.op == "onnx.Attention" || node.op == "Softmax"; }

}  // namespace

Graph with_per_op_rounding(const Graph& graph) {
  Graph copy;
  std::vector<ValueId> copied(static_cast<std::size_t>(graph.num_values()), kNoValue);
  const auto of = [&](ValueId value) { return value == kNoValue ? kNoValue : copied[static_cast<std::size_t>(value)]; };
  for (const GraphInput& input : graph.inputs()) {
    copied[static_cast<std::size_t>(input.value)] =
        copy.add_input(graph.value_name(input.value), input.type, input.dims);
  }
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    if (graph.constant(value) == nullptr) continue;
    copied[static_cast<std::size_t>(value)] = copy.add_constant(graph.value_name(value), graph.shared_constant(value));
  }
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(of(input));
    Attributes attributes = node.attributes;
    if (rounds_per_op(node)) attributes.set("per_op_rounding", std::int64_t{1});
    const std::vector<ValueId> outputs = copy.add_node(node.op, node.name, std::move(inputs), std::move(attributes),
                                                       static_cast<int>(node.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) copied[static_cast<std::size_t>(node.outputs[i])] = outputs[i];
    }
    // The node is the last of the copy, so a guard from there on is its own; each goes in front of those before it.
    for (auto guard = node.guards.rbegin(); guard != node.guards.rend(); ++guard) {
      copy.guard_nodes(copy.nodes().size() - 1, {of(guard->condition), guard->wanted});
    }
  }
  for (const Graph::Output& output : graph.outputs()) copy.add_output(output.name, of(output.value));
  return copy;
}

}  // namespace headway::tools
