// Values that are known before any input is: constants, and what nodes make of nothing but constants. Evaluated once
// a session. Knows no shapes of inputs.
#pragma once

#include <map>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

class KnownValues {
 public:
  /// Runs every node whose inputs are all known, on the calling thread. Throws what the operators throw, with the node
  /// named. `graph` must outlive the object.
  KnownValues(const Graph& graph, const Registry& registry);

  /// Absent when the value is not known, or is an absent output of a folded node.
  ConstTensorView view(ValueId value) const { return value == kNoValue ? ConstTensorView() : views_[value]; }
  bool folded(std::size_t node) const { return folded_[node]; }

 private:
  bool can_fold(const Node& node) const;
  void fold(const Node& node, const Operator& op);

  std::vector<ConstTensorView> views_;  // by value
  std::vector<Tensor> results_;         // what the views of folded values show
  std::vector<bool> folded_;            // by node
};

}  // namespace headway
