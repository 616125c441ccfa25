// One node at one shape: inferred, planned, and its errors told apart by node. Knows nothing of memory or order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"

namespace headway {

struct PlannedNode {
  std::unique_ptr<NodePlan> plan;
  std::vector<TensorInfo> outputs;
};

/// Infers and plans; checks that the operator inferred as many outputs as the node has, of possible dims.
PlannedNode plan_node(const Node& node, const Operator& op, std::span<const TensorInfo> inputs,
                      std::span<const ConstTensorView> constants);

/// Runs `work`; an Error that leaves it gets the node's name and operator in front of its message.
template <class Work>
auto name_errors(const Node& node, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), "node '" + node.name + "' (" + node.op + "): " + error.what());
  }
}

}  // namespace headway
