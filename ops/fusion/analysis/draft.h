// A graph that can be changed: nodes added, values replaced, dead nodes dropped. Decides order and names of the result;
// knows no operator.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headway/graph.h"

namespace headway::fusion {

struct DraftNode {
  Node node;
  /// Where it stands in the result: before the original node of that number, in the order of making.
  std::pair<int, int> order;
};

/// What a new node is made of.
struct NewNode {
  std::string op;
  std::string name;
  std::vector<ValueId> inputs;
  Attributes attributes;
  int outputs = 1;
  int before = 0;  ///< number of the node that it stands before
};

class Draft {
 public:
  explicit Draft(const Graph& graph);
  /// Nodes that an output needs, each after what it reads; all inputs.
  Graph build() const;

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int num_values() const { return static_cast<int>(values_.size()); }
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)].node; }
  /// Number of the original node that a node stands before; its own for an original one.
  int place_of(int index) const { return nodes_[static_cast<std::size_t>(index)].order.first; }
  /// The graph's inputs with types and dims.
  const std::vector<GraphInput>& inputs() const { return graph_.inputs(); }

  /// Number of the node that makes the value, −1 when none does.
  int producer(ValueId value) const {
    return value == kNoValue ? -1 : values_[static_cast<std::size_t>(value)].producer;
  }
  /// The node that makes the value as its first output, when it is of that operator and has no guards; else null.
  const Node* maker(ValueId value, std::string_view op) const;
  /// Null when the value is not a constant.
  const Tensor* constant(ValueId value) const {
    return value == kNoValue ? nullptr : values_[static_cast<std::size_t>(value)].constant.get();
  }
  const std::string& value_name(ValueId value) const { return values_[static_cast<std::size_t>(value)].name; }
  /// "node 'x' (Op)", "constant 'x'" or "input 'x'": for reports.
  std::string describe(ValueId value) const;

  /// Numbers of the nodes that read the value, a node for each time it does; nodes that an output does not need too,
  /// until sweep().
  std::vector<int> readers(ValueId value) const;
  /// The same without Shape and Size, which need no elements.
  std::vector<int> consumers(ValueId value) const;
  bool is_output(ValueId value) const { return !values_[static_cast<std::size_t>(value)].outputs.empty(); }
  /// Of the constants of the graph that the draft was made from.
  std::size_t constant_bytes() const { return constant_bytes_; }
  /// True when exactly one consumer reads it once and it is no output of the graph.
  bool has_one_consumer(ValueId value) const;

  ValueId add_constant(const std::string& name, std::shared_ptr<const Tensor> tensor);
  /// The constant of one number, f32 and rank 0; the same number is the same value.
  ValueId number(float value);
  /// Adds a node; an equal one that stands before the same place or earlier is used again.
  std::vector<ValueId> add_node(NewNode node);
  /// All who read `old` read `with` from now on, outputs of the graph included. Takes as long as there are such reads,
  /// however many other inputs the nodes have.
  void replace(ValueId old, ValueId with);
  /// Inputs, conditions and outputs of the graph looked at by replace() so far.
  std::size_t replace_steps() const { return replace_steps_; }
  /// Turns a value into a constant.
  void make_constant(ValueId value, std::shared_ptr<const Tensor> tensor);
  /// By node: whether an output of the graph needs it.
  std::vector<bool> needed_nodes() const;
  /// Forgets readers that no output needs.
  void sweep();

 private:
  /// An input of a node, or behind the inputs the condition of a guard.
  struct Read {
    int node;
    int slot;
    bool operator<(const Read& other) const { return std::pair(node, slot) < std::pair(other.node, other.slot); }
  };
  struct Value {
    std::string name;
    std::shared_ptr<const Tensor> constant;
    int producer = -1;
    std::vector<Read> reads;
    std::vector<int> outputs;  ///< of the graph, that it is
  };
  void add_reads(int node);
  ValueId& value_at(const Read& read);
  bool needs_elements(const Read& read) const;

  const Graph& graph_;
  std::vector<Value> values_;
  std::deque<DraftNode> nodes_;  ///< nodes stay where they are when more are added
  std::vector<ValueId> outputs_;
  std::size_t constant_bytes_ = 0;
  std::size_t replace_steps_ = 0;
  std::map<std::uint32_t, ValueId> numbers_;  ///< by bits: NaN has no order
};

}  // namespace headway::fusion
