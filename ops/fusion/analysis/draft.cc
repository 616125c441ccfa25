// The changes, and the walk that puts the nodes in order again.
#include "ops/fusion/analysis/draft.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace headway::fusion {
namespace {

constexpr int kOriginal = std::numeric_limits<int>::max();  // after all that stands before it

}  // namespace

Draft::Draft(const Graph& graph) : graph_(graph), values_(static_cast<std::size_t>(graph.num_values())) {
  for (ValueId value = 0; value < graph.num_values(); ++value) {
    values_[static_cast<std::size_t>(value)].name = graph.value_name(value);
    values_[static_cast<std::size_t>(value)].constant = graph.shared_constant(value);
    if (const Tensor* constant = graph.constant(value)) {
      constant_bytes_ += tensor_bytes(constant->type(), constant->dims());
    }
  }
  for (const Node& node : graph.nodes()) {
    const int index = num_nodes();
    nodes_.push_back({node, {index, kOriginal}});
    add_reads(index);
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) values_[static_cast<std::size_t>(output)].producer = index;
    }
  }
  for (const Graph::Output& output : graph.outputs()) {
    values_[static_cast<std::size_t>(output.value)].outputs.push_back(static_cast<int>(outputs_.size()));
    outputs_.push_back(output.value);
  }
}

void Draft::add_reads(int index) {
  const Node& reader = node(index);
  int slot = 0;
  const auto add = [&](ValueId value) {
    if (value != kNoValue) values_[static_cast<std::size_t>(value)].reads.push_back({index, slot});
    ++slot;
  };
  for (const ValueId input : reader.inputs) add(input);
  for (const Guard& guard : reader.guards) add(guard.condition);
}

ValueId& Draft::value_at(const Read& read) {
  Node& reader = nodes_[static_cast<std::size_t>(read.node)].node;
  const auto slot = static_cast<std::size_t>(read.slot);
  return slot < reader.inputs.size() ? reader.inputs[slot] : reader.guards[slot - reader.inputs.size()].condition;
}

const Node* Draft::maker(ValueId value, std::string_view op) const {
  const int index = producer(value);
  if (index < 0) return nullptr;
  const Node& made = node(index);
  return made.op == op && made.outputs[0] == value && made.guards.empty() ? &made : nullptr;
}

std::string Draft::describe(ValueId value) const {
  if (value == kNoValue) return "nothing";
  if (const int index = producer(value); index >= 0) return "node '" + node(index).name + "' (" + node(index).op + ")";
  return (constant(value) != nullptr ? "constant '" : "input '") + value_name(value) + "'";
}

bool Draft::needs_elements(const Read& read) const {
  const std::string& op = node(read.node).op;
  return op != "Shape" && op != "Size";
}

std::vector<int> Draft::readers(ValueId value) const {
  std::vector<int> result;
  for (const Read& read : values_[static_cast<std::size_t>(value)].reads) result.push_back(read.node);
  return result;
}

std::vector<int> Draft::consumers(ValueId value) const {
  std::vector<int> result;
  for (const Read& read : values_[static_cast<std::size_t>(value)].reads) {
    if (needs_elements(read)) result.push_back(read.node);
  }
  return result;
}

bool Draft::has_one_consumer(ValueId value) const {
  if (is_output(value)) return false;
  int count = 0;
  for (const Read& read : values_[static_cast<std::size_t>(value)].reads) {
    if (needs_elements(read) && ++count > 1) return false;
  }
  return count == 1;
}

ValueId Draft::add_constant(const std::string& name, std::shared_ptr<const Tensor> tensor) {
  values_.push_back({name, std::move(tensor), -1, {}, {}});
  return num_values() - 1;
}

ValueId Draft::number(float value) {
  const auto [entry, fresh] = numbers_.try_emplace(std::bit_cast<std::uint32_t>(value), kNoValue);
  if (fresh) {
    auto tensor = std::make_shared<Tensor>(DataType::kF32, Dims{});
    tensor->data<float>()[0] = value;
    entry->second = add_constant(std::to_string(value), std::move(tensor));
  }
  return entry->second;
}

std::vector<ValueId> Draft::add_node(NewNode made) {
  // Readers of the first input that is there know of every equal node.
  for (const ValueId input : made.inputs) {
    if (input == kNoValue) continue;
    for (const auto& [other, slot] : values_[static_cast<std::size_t>(input)].reads) {
      const Node& old = node(other);
      const bool same = old.op == made.op && old.inputs == made.inputs && old.guards.empty() &&
                        old.attributes.values() == made.attributes.values() &&
                        static_cast<int>(old.outputs.size()) == made.outputs;
      if (!same) continue;
      nodes_[static_cast<std::size_t>(other)].order =
          std::min(nodes_[static_cast<std::size_t>(other)].order, {made.before, other});
      return old.outputs;
    }
    break;
  }
  const int index = num_nodes();
  Node node{made.op, made.name, std::move(made.attributes), std::move(made.inputs), {}};
  for (int i = 0; i < made.outputs; ++i) {
    values_.push_back({i == 0 ? made.name : made.name + ':' + std::to_string(i), nullptr, index, {}, {}});
    node.outputs.push_back(num_values() - 1);
  }
  nodes_.push_back({std::move(node), {made.before, index}});
  add_reads(index);
  return nodes_.back().node.outputs;
}

void Draft::replace(ValueId old, ValueId with) {
  if (old == with) return;
  Value& from = values_[static_cast<std::size_t>(old)];
  Value& to = values_[static_cast<std::size_t>(with)];
  replace_steps_ += from.reads.size() + from.outputs.size();
  std::sort(from.reads.begin(), from.reads.end());
  for (const Read& read : from.reads) value_at(read) = with;
  for (const int output : from.outputs) outputs_[static_cast<std::size_t>(output)] = with;
  to.reads.insert(to.reads.end(), from.reads.begin(), from.reads.end());
  to.outputs.insert(to.outputs.end(), from.outputs.begin(), from.outputs.end());
  from.reads.clear();
  from.outputs.clear();
}

void Draft::make_constant(ValueId value, std::shared_ptr<const Tensor> tensor) {
  values_[static_cast<std::size_t>(value)].constant = std::move(tensor);
  values_[static_cast<std::size_t>(value)].producer = -1;
}

std::vector<bool> Draft::needed_nodes() const {
  std::vector<bool> needed(nodes_.size());
  std::vector<ValueId> open = outputs_;
  while (!open.empty()) {
    const int index = producer(open.back());
    open.pop_back();
    if (index < 0 || needed[static_cast<std::size_t>(index)]) continue;
    needed[static_cast<std::size_t>(index)] = true;
    for (const ValueId input : node(index).inputs) {
      if (input != kNoValue) open.push_back(input);
    }
    for (const Guard& guard : node(index).guards) open.push_back(guard.condition);
  }
  return needed;
}

void Draft::sweep() {
  const std::vector<bool> needed = needed_nodes();
  for (Value& value : values_) {
    std::erase_if(value.reads, [&](const Read& read) { return !needed[static_cast<std::size_t>(read.node)]; });
  }
}

Graph Draft::build() const {
  Graph result;
  std::vector<ValueId> ids(values_.size(), kNoValue);
  for (const GraphInput& input : graph_.inputs()) {
    ids[static_cast<std::size_t>(input.value)] =
        result.add_input(graph_.value_name(input.value), input.type, input.dims);
  }
  const std::vector<bool> needed = needed_nodes();
  std::vector<int> order;
  for (int i = 0; i < num_nodes(); ++i) {
    if (needed[static_cast<std::size_t>(i)]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return nodes_[static_cast<std::size_t>(a)].order < nodes_[static_cast<std::size_t>(b)].order;
  });
  const auto id_of = [&](ValueId value) {
    if (value == kNoValue) return kNoValue;
    ValueId& id = ids[static_cast<std::size_t>(value)];
    if (id == kNoValue && constant(value) != nullptr) {
      id = result.add_constant(value_name(value), values_[static_cast<std::size_t>(value)].constant);
    }
    return id;
  };
  std::vector<bool> done(nodes_.size());
  const auto emit = [&](int index) {
    const Node& from = node(index);
    std::vector<ValueId> inputs;
    for (const ValueId input : from.inputs) inputs.push_back(id_of(input));
    const std::size_t at = result.nodes().size();
    const std::vector<ValueId> outputs =
        result.add_node(from.op, from.name, std::move(inputs), from.attributes, static_cast<int>(from.outputs.size()));
    for (auto guard = from.guards.rbegin(); guard != from.guards.rend(); ++guard) {
      result.guard_nodes(at, {id_of(guard->condition), guard->wanted});
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      // Not what has become a constant meanwhile.
      if (producer(from.outputs[i]) == index) ids[static_cast<std::size_t>(from.outputs[i])] = outputs[i];
    }
    done[static_cast<std::size_t>(index)] = true;
  };
  // Depth first, with a stack of its own: chains may be as long as the graph.
  for (const int first : order) {
    std::vector<int> stack{first};
    while (!stack.empty()) {
      const int index = stack.back();
      if (done[static_cast<std::size_t>(index)]) {
        stack.pop_back();
        continue;
      }
      const std::size_t before = stack.size();
      const auto visit = [&](ValueId value) {
        const int other = producer(value);
        if (other >= 0 && !done[static_cast<std::size_t>(other)]) stack.push_back(other);
      };
      for (const ValueId input : node(index).inputs) visit(input);
      for (const Guard& guard : node(index).guards) visit(guard.condition);
      if (stack.size() != before) continue;
      emit(index);
      stack.pop_back();
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    result.add_output(graph_.outputs()[i].name, id_of(outputs_[i]));
  }
  return result;
}

}  // namespace headway::fusion
