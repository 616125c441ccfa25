// A graph as data: inputs with symbolic dims, constants, nodes with attributes, outputs. Says nothing of how it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "headway/export.h"
#include "headway/operator.h"
#include "headway/tensor.h"

namespace headway {

/// A size, or the name of one that is known only at run time. Equal names are expected to be equal sizes: a run in
/// which they are not takes the graph that this one was rewritten from.
using SymbolicDim = std::variant<std::int64_t, std::string, NeverHeld>;

/// Identifies a value of one graph. kNoValue stands for an optional input left out or an output nobody wants.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

struct GraphInput {
  ValueId value;
  DataType type;
  std::vector<SymbolicDim> dims;
};

/// A node of a conditional branch counts only where `condition`, one bool, is `wanted`.
struct Guard {
  ValueId condition = kNoValue;
  bool wanted = true;
};

struct Node {
  std::string op;    ///< the operator's name in the registry
  std::string name;  ///< for messages and the profile; need not be unique
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// All must hold. A guard known not to hold when a shape is planned takes the node out of the plan and leaves its
  /// outputs absent; one not known by then is taken as holding, since operators have no effects.
  std::vector<Guard> guards = {};
};

/// Built front to back: a node may only use values that exist, so a graph is acyclic by construction. Copying shares
/// the constants. Safe to read from several threads once nobody builds. Functions that take a ValueId or a name throw
/// kInvalidArgument, naming the node, input or output and both numbers, for one that there is not.
class HEADWAY_API Graph {
 public:
  /// Throws kInvalidArgument when `name` is taken.
  ValueId add_input(const std::string& name, DataType type, std::vector<SymbolicDim> dims);
  /// The tensor is shared, not copied.
  ValueId add_constant(const std::string& name, std::shared_ptr<const Tensor> tensor);
  /// Adds a node with one output and returns that output.
  ValueId add_node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                   Attributes attributes = {});
  /// Adds a node with `num_outputs` outputs, named "<name>", "<name>:1", ….
  std::vector<ValueId> add_node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                                Attributes attributes, int num_outputs);
  /// Guards the nodes from index `first` on, in front of the guards that they have.
  void guard_nodes(std::size_t first, Guard guard);
  /// Marks a value as an output under a name of its own.
  void add_output(const std::string& name, ValueId value);
  /// The graph that this one was rewritten from, with the same inputs and outputs: it decides where a run contradicts
  /// what the rewriting took for granted, and says what is wrong with shapes in the words of its own nodes.
  void set_source(std::shared_ptr<const Graph> source) { source_ = std::move(source); }
  /// Null when there is none.
  const std::shared_ptr<const Graph>& source() const { return source_; }

  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  struct Output {
    std::string name;
    ValueId value;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  /// Null when the value is not a constant.
  const Tensor* constant(ValueId value) const { return shared_constant(value).get(); }
  /// The same, to be shared with another graph.
  const std::shared_ptr<const Tensor>& shared_constant(ValueId value) const;
  const std::string& value_name(ValueId value) const;
  int num_values() const { return static_cast<int>(values_.size()); }

 private:
  struct Value {
    std::string name;
    std::shared_ptr<const Tensor> constant;
  };
  ValueId new_value(const std::string& name);

  std::vector<Value> values_;
  std::vector<GraphInput> inputs_;
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  std::shared_ptr<const Graph> source_;
  // So that checking for a name that is taken takes no walk over all values.
  std::unordered_set<std::string> names_;  // of the first `named_` values
  std::size_t named_ = 0;
  std::unordered_set<std::string> output_names_;
};

/// Runs the rule of a node's operator. Throws what it throws, and for outputs that no tensor can be, with the node's
/// name and operator in front: everybody who asks gets the same words.
HEADWAY_API std::vector<ValueInfo> infer_node(const Node& node, const Operator& op, const InferContext& context);

/// `error` with the node's name and operator in front of its message.
HEADWAY_API Error node_error(const Node& node, const Error& error);

}  // namespace headway
