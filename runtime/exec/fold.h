// Values that are known before any input is: constants, and what nodes make of nothing but constants. Evaluated once
// a session, if an output needs them, and kept while a node that does not fold reads them. Knows no shapes of inputs.
#pragma once

#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"
#include "runtime/base/check.h"
#include "runtime/base/quoted.h"
#include "runtime/exec/constant_table.h"
#include "runtime/exec/planned_node.h"

namespace headway {

/// How many readers each value has that still need its elements. A folded node needs those of its inputs no more.
class ReaderCounts {
 public:
  /// Of nodes for which `counts(node)` is true, and of the graph's outputs.
  template <class Counts>
  ReaderCounts(const Graph& graph, const Counts& counts) : readers_(graph.num_values()) {
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      if (!counts(i)) continue;
      for (const ValueId input : graph.nodes()[i].inputs) {
        if (input != kNoValue) ++readers_[input];
      }
      for (const Guard& guard : graph.nodes()[i].guards) ++readers_[guard.condition];
    }
    for (const Graph::Output& output : graph.outputs()) ++readers_[output.value];
  }
  /// Takes a folded node's reads away and releases in the table what nobody reads any more.
  void folded(const Node& node, ConstantTable* table) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue && --readers_[input] == 0) table->release(input);
    }
  }

 private:
  std::vector<std::int32_t> readers_;
};

class KnownValues {
 public:
  /// Runs every node that an output needs and whose inputs are all known, on the calling thread. Throws what the
  /// operators throw, with the node named. `graph` must outlive the object.
  KnownValues(const Graph& graph, const Registry& registry, std::shared_ptr<MemoryBudget> budget);

  const ConstantTable& table() const { return table_; }
  bool folded(std::size_t node) const { return folded_[node]; }
  /// Whether an output may need the node at some shapes.
  bool needed(std::size_t node) const { return needed_[node]; }

 private:
  bool can_fold(const Node& node) const;
  bool fold(const Node& node, const Operator& op);

  ConstantTable table_;
  std::vector<bool> needed_;  // by node
  std::vector<bool> folded_;  // by node
};

/// Puts what a node makes of known inputs into the table; false when it is not known now. A view of a known value is
/// one: nothing is copied.
bool fold_node(const NodeCase& node, NodeOutputs outputs, ConstantTable* table);

/// Whether a node's guards hold, by the values known so far.
enum class GuardState { kHold, kFail, kUnknown };
/// `known(value)` gives a view, absent when the value is not known. Throws kInvalidArgument when a condition that is
/// known is not one bool.
template <class Known>
GuardState guard_state(const Node& node, const Known& known) {
  GuardState state = GuardState::kHold;
  for (const Guard& guard : node.guards) {
    const ConstTensorView view = known(guard.condition);
    if (!view) {
      state = GuardState::kUnknown;
      continue;
    }
    require(view.type == DataType::kBool && view.count() == 1, "node ", Quoted{node.name}, ": its condition is ",
            type_name(view.type), ' ', view.dims, ", expected one bool");
    // A byte that is neither 0 nor 1 may not be read as a bool.
    if ((*view.data != std::byte{0}) != guard.wanted) return GuardState::kFail;
  }
  return state;
}

}  // namespace headway
