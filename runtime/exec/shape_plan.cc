// Shape inference over the graph, then liveness over the order of the nodes.
#include "runtime/exec/shape_plan.h"

#include <algorithm>

namespace headway {

ShapePlan::ShapePlan(const Graph& graph, const Registry& registry, const KnownValues& known,
                     std::span<const TensorInfo> inputs)
    : graph_(graph), known_(known), infos_(graph.num_values(), TensorInfo{DataType::kF32, {}, false}) {
  for (std::size_t i = 0; i < inputs.size(); ++i) infos_[graph.inputs()[i].value] = inputs[i];
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    if (const ConstTensorView view = known.view(value)) infos_[value] = {view.type, view.dims, true};
  }
  plan_nodes(registry);
  for (const Graph::Output& output : graph.outputs()) {
    require(infos_[output.value].present, "output '", output.name, "' is value '", graph.value_name(output.value),
            "', which its node does not make at these shapes");
    output_infos_.push_back(infos_[output.value]);
  }
  plan_values();
}

void ShapePlan::plan_nodes(const Registry& registry) {
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (known_.folded(i)) continue;
    const Node& node = graph_.nodes()[i];
    std::vector<TensorInfo> inputs;
    std::vector<ConstTensorView> constants;
    for (ValueId value : node.inputs) {
      inputs.push_back(value == kNoValue ? TensorInfo{DataType::kF32, {}, false} : infos_[value]);
      constants.push_back(known_.view(value));
    }
    PlannedNode planned = plan_node(node, *registry.find(node.op), inputs, constants);
    for (std::size_t k = 0; k < planned.outputs.size(); ++k) infos_[node.outputs[k]] = planned.outputs[k];
    steps_.push_back({i, std::move(planned.plan)});
  }
}

void ShapePlan::plan_values() {
  std::vector<int> last_use(graph_.num_values(), -1);
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    for (ValueId value : graph_.nodes()[steps_[s].node].inputs) {
      if (value != kNoValue) last_use[value] = s;
    }
  }
  std::vector<bool> unwritten(graph_.num_values());
  for (const Step& step : steps_) {
    for (ValueId value : graph_.nodes()[step.node].outputs) unwritten[value] = true;
  }
  for (const Graph::Output& output : graph_.outputs()) {
    output_is_written_.push_back(unwritten[output.value]);
    unwritten[output.value] = false;
  }

  // A value that leaves the graph is written where the caller wants it and needs no place of ours.
  std::vector<bool> leaves(graph_.num_values());
  for (const Graph::Output& output : graph_.outputs()) leaves[output.value] = true;

  std::vector<Lifetime> lifetimes;
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    for (ValueId value : graph_.nodes()[steps_[s].node].outputs) {
      const TensorInfo& info = infos_[value];
      if (!info.present || leaves[value]) continue;
      // An output that nobody reads is still written by its node.
      lifetimes.push_back({s, std::max(s, last_use[value]), tensor_bytes(info.type, info.dims)});
      arena_values_.push_back(value);
    }
  }
  memory_ = plan_memory(lifetimes);
}

std::size_t ShapePlan::workspace_bytes(int workers) const {
  std::size_t bytes = 0;
  for (const Step& step : steps_) bytes = std::max(bytes, step.plan->workspace_bytes(workers));
  return bytes;
}

std::unique_ptr<RunState> ShapePlan::make_state() const {
  auto state = std::make_unique<RunState>();
  state->arena = AlignedBuffer(memory_.arena_bytes);
  state->values.resize(graph_.num_values());
  for (ValueId value = 0; value < graph_.num_values(); ++value) state->values[value].readable = known_.view(value);
  for (std::size_t i = 0; i < arena_values_.size(); ++i) {
    const TensorInfo& info = infos_[arena_values_[i]];
    state->values[arena_values_[i]] = TensorView(state->arena.data() + memory_.offsets[i], info.type, info.dims);
  }
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  for (const Step& step : steps_) {
    most_inputs = std::max(most_inputs, graph_.nodes()[step.node].inputs.size());
    most_outputs = std::max(most_outputs, graph_.nodes()[step.node].outputs.size());
  }
  state->node_inputs.resize(most_inputs);
  state->node_outputs.resize(most_outputs);
  state->input_staging.resize(graph_.inputs().size());
  state->output_staging.resize(graph_.outputs().size());
  return state;
}

}  // namespace headway
