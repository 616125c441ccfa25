// One node at one shape: inferred, planned or run at once, and its errors told apart by node. Knows nothing of memory
// or order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"
#include "runtime/base/printable.h"
#include "runtime/exec/constant_table.h"

namespace headway {

/// A node with its operator and what is known of its inputs.
struct NodeCase {
  const Node& node;
  const Operator& op;
  const ConstantTable& known;
  std::vector<TensorInfo> inputs;
  /// Constants in a file as they lie: enough to infer, since nobody infers from the values of large ones.
  std::vector<ConstTensorView> constants;
  std::uint64_t fixed = 0;            ///< as in NodeContext
  const NodePlan* sibling = nullptr;  ///< as in NodeContext

  NodeContext context() const { return {node.attributes, inputs, constants, static_cast<int>(node.outputs.size())}; }
};

NodeCase make_case(const Node& node, const Operator& op, const ConstantTable& known, std::vector<TensorInfo> inputs);

/// What a node gives: type and dims of each output, and the values that follow from shapes and attributes alone; empty
/// where none do.
struct NodeOutputs {
  std::vector<TensorInfo> infos;
  std::vector<std::optional<Tensor>> values;
};
NodeOutputs infer_node(const NodeCase& node);

/// Constants in a file are aligned while the plan is made; the plan says what it needs of them later.
std::unique_ptr<NodePlan> plan_node(const NodeCase& node, std::span<const TensorInfo> outputs);

/// The outputs' values by now, absent ones as nullopt; empty when they are not known, or too large to keep: an
/// expansion of little to much stays in the run. A node of no inputs may be anything, a random generator too, and is
/// known by its rule only.
std::vector<std::optional<Tensor>> evaluate_node(const NodeCase& node, NodeOutputs outputs);

/// True when nothing is to be computed: a tensor without elements may still have 2^60 rows, which nobody walks.
bool has_no_elements(std::span<const TensorInfo> outputs);

/// The input that the node's only output shows, -1 for none. Checks that it has the output's type and element count.
int aliased_input(const NodeCase& node, std::span<const TensorInfo> outputs);

/// "node 'x' (Op)", fit for a message of one line.
inline std::string described(const Node& node) { return "node " + quoted(node.name) + " (" + node.op + ")"; }

/// Runs `work`; an Error that leaves it gets the node's name and operator in front of its message.
template <class Work>
auto name_errors(const Node& node, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw node_error(node, error);
  }
}

}  // namespace headway
