// Shape inference and folding front to back, need back to front, plans for what is left, liveness over their order.
#include "runtime/exec/shape_plan.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/quoted.h"

namespace headway {
namespace {

// Info, entry of the constants' table and view of each value, as one plan keeps them.
constexpr std::size_t kTableBytesPerValue = sizeof(TensorInfo) + 2 * sizeof(ConstTensorView);

}  // namespace

ShapePlan::ShapePlan(const Graph& graph, const Registry& registry, const KnownValues& known,
                     std::span<const TensorInfo> inputs, const ShapePlan* sibling)
    : graph_(graph),
      known_(&known.table()),
      kept_(known_),
      infos_(graph.num_values(), TensorInfo{DataType::kF32, {}, false}),
      roles_(graph.nodes().size(), NodeRole::kRuns),
      aliased_inputs_(graph.nodes().size(), -1),
      viewed_(graph.num_values(), kNoValue),
      charge_(new_charge()),
      shared_weights_(sibling ? sibling->shared_weights_
                              : std::make_shared<SharedWeights>(new_charge(), graph.num_values())) {
  charge_.add("the tables of a plan", graph.num_values() * kTableBytesPerValue);
  for (std::size_t i = 0; i < inputs.size(); ++i) infos_[graph.inputs()[i].value] = inputs[i];
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    if (TensorInfo info = known_.info(value); info.present) infos_[value] = info;
  }
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (!known.needed(i)) roles_[i] = NodeRole::kUnused;
    if (known.folded(i)) roles_[i] = NodeRole::kFolded;
  }
  infer_nodes(registry);
  for (const Graph::Output& output : graph.outputs()) {
    require(infos_[output.value].present, "output ", Quoted{output.name}, " is value ",
            Quoted{graph.value_name(output.value)}, ", which its node does not make at these shapes");
    output_infos_.push_back(infos_[output.value]);
  }
  mark_unused();
  check_sizes();
  plan_nodes(registry, known.table(), sibling);
  plan_values();
  check_memory();
  keep_constants();
}

NodeCase ShapePlan::node_case(std::size_t node, const Registry& registry) const {
  const Node& one = graph_.nodes()[node];
  std::vector<TensorInfo> inputs;
  for (ValueId value : one.inputs) {
    inputs.push_back(value == kNoValue ? TensorInfo{DataType::kF32, {}, false} : infos_[value]);
  }
  return make_case(one, *registry.find(one.op), known_, std::move(inputs));
}

void ShapePlan::infer_nodes(const Registry& registry) {
  ReaderCounts readers(graph_, [&](std::size_t i) { return roles_[i] == NodeRole::kRuns; });
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (roles_[i] == NodeRole::kUnused) infer_unneeded(i, registry);
    if (roles_[i] != NodeRole::kRuns) continue;
    const Node& node = graph_.nodes()[i];
    if (guard_state(node, [&](ValueId value) { return known_.unaligned_view(value); }) == GuardState::kFail) {
      roles_[i] = NodeRole::kOff;
      continue;
    }
    infer_one(i, registry);
    if (roles_[i] == NodeRole::kFolded) readers.folded(node, &known_);
  }
}

/// For explain() only. What such a node reads may be unknown, since nothing is folded for it, and it need not be right.
void ShapePlan::infer_unneeded(std::size_t index, const Registry& registry) {
  try {
    const std::vector<TensorInfo> outputs = infer_node(node_case(index, registry)).infos;
    for (std::size_t k = 0; k < outputs.size(); ++k) infos_[graph_.nodes()[index].outputs[k]] = outputs[k];
  } catch (const Error&) {
    return;  // its outputs stay absent
  }
}

void ShapePlan::infer_one(std::size_t index, const Registry& registry) {
  const NodeCase one = node_case(index, registry);
  NodeOutputs outputs = infer_node(one);
  for (std::size_t k = 0; k < outputs.infos.size(); ++k) infos_[one.node.outputs[k]] = outputs.infos[k];
  const int viewed = aliased_input(one, outputs.infos);
  if (fold_node(one, std::move(outputs), &known_)) {
    roles_[index] = NodeRole::kFolded;
    return;
  }
  if (viewed < 0) return;
  roles_[index] = NodeRole::kView;
  aliased_inputs_[index] = viewed;
  viewed_[one.node.outputs[0]] = one.node.inputs[viewed];
}

void ShapePlan::mark_unused() {
  std::vector<bool> needed(graph_.num_values());
  for (const Graph::Output& output : graph_.outputs()) needed[output.value] = true;
  for (std::size_t i = graph_.nodes().size(); i-- > 0;) {
    if (roles_[i] != NodeRole::kRuns && roles_[i] != NodeRole::kView) continue;
    const Node& node = graph_.nodes()[i];
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId value) { return needed[value]; })) {
      roles_[i] = NodeRole::kUnused;
      continue;
    }
    if (roles_[i] == NodeRole::kView) {
      needed[viewed_[node.outputs[0]]] = true;
      continue;
    }
    for (ValueId value : node.inputs) {
      if (value != kNoValue) needed[value] = true;
    }
  }
}

void ShapePlan::plan_nodes(const Registry& registry, const ConstantTable& fixed, const ShapePlan* sibling) {
  std::vector<const NodePlan*> siblings(graph_.nodes().size());
  if (sibling != nullptr) {
    for (const Step& step : sibling->steps()) siblings[step.node] = step.plan.get();
  }
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (roles_[i] == NodeRole::kView) {
      steps_.push_back({i, nullptr, aliased_inputs_[i]});
    } else if (roles_[i] == NodeRole::kRuns) {
      std::vector<TensorInfo> outputs;
      for (ValueId value : graph_.nodes()[i].outputs) outputs.push_back(infos_[value]);
      NodeCase one = node_case(i, registry);
      one.sibling = siblings[i];
      for (std::size_t k = 0; k < std::min<std::size_t>(one.node.inputs.size(), 64); ++k) {
        if (fixed.unaligned_view(one.node.inputs[k])) one.fixed |= std::uint64_t{1} << k;
      }
      steps_.push_back({i, plan_node(one, outputs), -1, has_no_elements(outputs)});
      charge_node(steps_.back(), one.fixed);
    }
  }
}

/// Constants whose values went into the plan: packed, they take about what they took before.
void ShapePlan::charge_node(const Step& step, std::uint64_t fixed) {
  const Node& node = graph_.nodes()[step.node];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ConstTensorView view = known_.unaligned_view(node.inputs[i]);
    if (!view || step.plan->use(i) != InputUse::kNothing) continue;
    const std::size_t bytes = tensor_bytes(view.type, view.dims);
    name_errors(node, [&] {
      if (i < 64 && (fixed >> i & 1) != 0) return shared_weights_->add("packed weights", node.inputs[i], bytes);
      charge_.add("packed weights", bytes);
    });
  }
}

std::size_t ShapePlan::output_bytes() const {
  std::size_t bytes = 0;
  for (const TensorInfo& info : output_infos_) bytes = saturating_sum(bytes, tensor_bytes(info.type, info.dims));
  return bytes;
}

/// Outputs and the largest intermediate, before any node is planned for them.
void ShapePlan::check_sizes() const {
  const std::size_t outputs = output_bytes();
  std::size_t largest = 0;
  const Node* maker = nullptr;
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (roles_[i] != NodeRole::kRuns) continue;
    for (const ValueId value : graph_.nodes()[i].outputs) {
      const std::size_t bytes = infos_[value].present ? tensor_bytes(infos_[value].type, infos_[value].dims) : 0;
      if (bytes <= largest) continue;
      largest = bytes;
      maker = &graph_.nodes()[i];
    }
  }
  const MemoryBudget& budget = known_.budget();
  if (budget.fits(outputs) && budget.fits(largest)) return;
  const auto check = [&](std::string what, std::size_t bytes) {
    const MemoryNeed need{std::move(what), bytes};
    budget.check({&need, 1});
  };
  if (maker != nullptr) check("the largest tensor, of " + described(*maker), largest);
  check("outputs", outputs);
}

void ShapePlan::check_memory() const {
  const MemoryNeed needs[] = {{"intermediates", memory_.arena_bytes},
                              {"outputs", output_bytes()},
                              {"workspace", workspace_bytes(1)},
                              {"tables", state_bytes() - memory_.arena_bytes}};
  known_.budget().check(needs);
}

/// The value whose memory `value` shows.
ValueId ShapePlan::root(ValueId value) const {
  while (viewed_[value] != kNoValue) value = viewed_[value];
  return value;
}

/// By value that has memory of its own, the last step that reads it or a view of it; -1 for none.
std::vector<int> ShapePlan::last_uses() const {
  std::vector<int> last(graph_.num_values(), -1);
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    if (steps_[s].plan == nullptr) continue;
    for (ValueId value : graph_.nodes()[steps_[s].node].inputs) {
      if (value != kNoValue) last[root(value)] = s;
    }
  }
  // A view that leaves the graph is copied after the last step.
  for (const Graph::Output& output : graph_.outputs()) {
    if (viewed_[output.value] != kNoValue) last[root(output.value)] = static_cast<int>(steps_.size());
  }
  return last;
}

void ShapePlan::plan_values() {
  std::vector<bool> unwritten(graph_.num_values());
  for (const Step& step : steps_) {
    if (step.plan == nullptr) continue;
    for (ValueId value : graph_.nodes()[step.node].outputs) unwritten[value] = true;
  }
  for (const Graph::Output& output : graph_.outputs()) {
    output_is_written_.push_back(unwritten[output.value]);
    unwritten[output.value] = false;
  }
  extended_inputs_ = headway::extended_inputs(graph_, steps_, output_is_written_);

  // A value that leaves the graph is written where the caller wants it and needs no place of ours.
  std::vector<bool> leaves(graph_.num_values());
  for (const Graph::Output& output : graph_.outputs()) leaves[output.value] = true;

  const std::vector<int> last_use = last_uses();
  std::vector<Lifetime> lifetimes;
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    if (steps_[s].plan == nullptr) continue;
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

void ShapePlan::keep_constants() {
  std::vector<bool> as_numbers(graph_.num_values());
  for (const Step& step : steps_) {
    if (step.plan == nullptr) continue;
    const std::vector<ValueId>& inputs = graph_.nodes()[step.node].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != kNoValue && step.plan->use(i) == InputUse::kElements) as_numbers[inputs[i]] = true;
    }
  }
  for (const Graph::Output& output : graph_.outputs()) as_numbers[output.value] = true;
  for (ValueId value = 0; value < graph_.num_values(); ++value) {
    const ConstTensorView lying = known_.unaligned_view(value);
    if (!as_numbers[value]) {
      readable_.push_back(lying);
      continue;
    }
    readable_.push_back(kept_.view(value));
    // Plans share the copy, which goes with the last of them.
    if (lying && readable_.back().data != lying.data) {
      shared_weights_->add("aligned weights", value, tensor_bytes(lying.type, lying.dims));
    }
  }
}

std::size_t ShapePlan::state_bytes() const {
  return saturating_sum(memory_.arena_bytes, graph_.num_values() * sizeof(ValueViews));
}

std::size_t ShapePlan::workspace_bytes(int workers) const {
  std::size_t bytes = 0;
  for (const Step& step : steps_) {
    if (step.plan && !step.empty) bytes = std::max(bytes, step.plan->workspace_bytes(workers));
  }
  return bytes;
}

std::unique_ptr<RunState> ShapePlan::make_state() const {
  auto state = std::make_unique<RunState>();
  state->charge = new_charge();
  state->charge.add("the intermediates of a run", state_bytes());
  state->arena = AlignedBuffer(memory_.arena_bytes);
  state->values.resize(graph_.num_values());
  for (ValueId value = 0; value < graph_.num_values(); ++value) state->values[value].readable = readable_[value];
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
