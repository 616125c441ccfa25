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
    folded_[i] = can_fold(node);
    if (folded_[i]) fold(node, *registry.find(node.op));
  }
}

bool KnownValues::can_fold(const Node& node) const {
  // A node of no inputs may be anything, a random generator too; it stays in the run.
  bool any = false;
  for (ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (!views_[input]) return false;
    any = true;
  }
  return any;
}

void KnownValues::fold(const Node& node, const Operator& op) {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorInfo> infos;
  for (ValueId input : node.inputs) {
    inputs.push_back(view(input));
    infos.push_back({inputs.back().type, inputs.back().dims, inputs.back().present});
  }
  const PlannedNode planned = plan_node(node, op, infos, inputs);
  std::vector<TensorView> outputs;
  for (const TensorInfo& info : planned.outputs) {
    if (!info.present) {
      outputs.emplace_back();
      continue;
    }
    results_.emplace_back(info.type, info.dims);
    outputs.push_back(results_.back().view());
  }
  const Threads threads = Threads::serial();
  const AlignedBuffer workspace(planned.plan->workspace_bytes(threads.workers()));
  name_errors(node, [&] { planned.plan->run({threads, workspace.data(), nullptr}, inputs, outputs); });
  for (std::size_t i = 0; i < outputs.size(); ++i) views_[node.outputs[i]] = outputs[i];
}

}  // namespace headway
