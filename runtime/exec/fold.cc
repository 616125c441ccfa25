// Constant folding, once a session: the results depend on no input, so every shape plan shares them.
#include "runtime/exec/fold.h"

#include <algorithm>

#include "runtime/exec/planned_node.h"

namespace headway {

KnownValues::KnownValues(const Graph& graph, const Registry& registry)
    : views_(graph.num_values()), folded_(graph.nodes().size()) {
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    if (const Tensor* constant = graph.constant(value)) views_[value] = constant->view();
  }
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    folded_[i] = can_fold(node) && fold(node, *registry.find(node.op));
  }
}

bool KnownValues::can_fold(const Node& node) const {
  if (guard_state(node, [&](ValueId value) { return view(value); }) != GuardState::kHold) return false;
  bool any = false;
  for (ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (!views_[input]) return false;
    any = true;
  }
  return any;
}

bool KnownValues::fold(const Node& node, const Operator& op) {
  NodeCase one{node, op, {}, {}};
  for (ValueId input : node.inputs) {
    one.constants.push_back(view(input));
    one.inputs.push_back({one.constants.back().type, one.constants.back().dims, one.constants.back().present});
  }
  std::vector<std::optional<Tensor>> values = evaluate_node(one, infer_node(one));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    results_.push_back(std::move(*values[i]));
    views_[node.outputs[i]] = std::as_const(results_.back()).view();
  }
  return !values.empty();
}

}  // namespace headway
