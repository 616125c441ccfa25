// A graph at one set of concrete input shapes: a plan a node, where each intermediate lies, and the pool of memory for
// runs. Immutable but for the pool.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "headway/graph.h"
#include "runtime/exec/fold.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/exec/planned_node.h"
#include "runtime/exec/run_state.h"

namespace headway {

/// A node that runs, in order; folded nodes are left out.
struct Step {
  std::size_t node;  ///< index in the graph
  std::unique_ptr<NodePlan> plan;
};

class ShapePlan {
 public:
  /// Infers, plans and lays out. Graph and known values must outlive the plan.
  ShapePlan(const Graph& graph, const Registry& registry, const KnownValues& known, std::span<const TensorInfo> inputs);

  const std::vector<Step>& steps() const { return steps_; }
  const TensorInfo& info(ValueId value) const { return infos_[value]; }
  const std::vector<TensorInfo>& output_infos() const { return output_infos_; }
  /// True when a node writes this output where the caller wants it; else the value is copied there, because it is an
  /// input, a constant or folded, or leaves the graph under an earlier output's name too.
  bool output_is_written(std::size_t output) const { return output_is_written_[output]; }
  const MemoryPlan& memory() const { return memory_; }
  /// The most that any node needs with so many workers.
  std::size_t workspace_bytes(int workers) const;
  RunStatePool& pool() const { return pool_; }

  /// A state whose views show everything but the tensors of the caller.
  std::unique_ptr<RunState> make_state() const;

 private:
  void plan_nodes(const Registry& registry);
  void plan_values();

  const Graph& graph_;
  const KnownValues& known_;
  std::vector<TensorInfo> infos_;  // by value
  std::vector<Step> steps_;
  std::vector<TensorInfo> output_infos_;
  std::vector<bool> output_is_written_;
  std::vector<ValueId> arena_values_;  // the values that the memory plan places, in its order
  MemoryPlan memory_;
  mutable RunStatePool pool_;
};

}  // namespace headway
