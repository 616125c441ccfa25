// Constant folding, once a session: the results depend on no input, so every shape plan shares them.
#include "runtime/exec/fold.h"

#include <algorithm>
#include <utility>

namespace headway {
namespace {

/// By node: whether an output needs it, by way of inputs and conditions.
std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> values(graph.num_values());
  for (const Graph::Output& output : graph.outputs()) values[output.value] = true;
  std::vector<bool> nodes(graph.nodes().size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    nodes[i] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId value) { return values[value]; });
    if (!nodes[i]) continue;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) values[input] = true;
    }
    for (const Guard& guard : node.guards) values[guard.condition] = true;
  }
  return nodes;
}

}  // namespace

KnownValues::KnownValues(const Graph& graph, const Registry& registry, std::shared_ptr<MemoryBudget> budget)
    : table_(graph, std::move(budget)), needed_(needed_nodes(graph)), folded_(graph.nodes().size()) {
  ReaderCounts readers(graph, [&](std::size_t i) { return needed(i); });
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    folded_[i] = needed_[i] && can_fold(node) && fold(node, *registry.find(node.op));
    if (folded_[i]) readers.folded(node, &table_);
  }
}

bool KnownValues::can_fold(const Node& node) const {
  const auto known = [&](ValueId value) { return table_.unaligned_view(value); };
  if (guard_state(node, known) != GuardState::kHold) return false;
  bool any = false;
  for (ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (!table_.unaligned_view(input)) return false;
    any = true;
  }
  return any;
}

bool KnownValues::fold(const Node& node, const Operator& op) {
  std::vector<TensorInfo> infos;
  for (ValueId input : node.inputs) {
    const ConstTensorView view = table_.unaligned_view(input);
    infos.push_back({view.type, view.dims, view.present});
  }
  const NodeCase one = make_case(node, op, table_, std::move(infos));
  return fold_node(one, infer_node(one), &table_);
}

bool fold_node(const NodeCase& node, NodeOutputs outputs, ConstantTable* table) {
  const int viewed = aliased_input(node, outputs.infos);
  if (viewed >= 0 && node.constants[static_cast<std::size_t>(viewed)]) {
    table->set_view(node.node.outputs[0], node.node.inputs[static_cast<std::size_t>(viewed)], outputs.infos[0]);
    return true;
  }
  std::vector<std::optional<Tensor>> values = evaluate_node(node, std::move(outputs));
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k]) table->set(node.node.outputs[k], std::move(*values[k]));
  }
  return !values.empty();
}

}  // namespace headway
