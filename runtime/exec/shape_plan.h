// A graph at one set of concrete input shapes: what is known by now, a plan for each node that must run, where each
// intermediate lies, and the pool of memory for runs. Immutable but for the pool.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "headway/graph.h"
#include "runtime/exec/fold.h"
#include "runtime/exec/in_place.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/exec/planned_node.h"
#include "runtime/exec/run_state.h"

namespace headway {

/// What becomes of a node at these shapes.
enum class NodeRole : std::uint8_t {
  kRuns,
  kFolded,  ///< its outputs are known
  kView,    ///< its output is an input's elements under other dims
  kUnused,  ///< nothing that runs needs it
  kOff,     ///< in a branch that is not taken
};

/// A node that runs or a view to be bound, in order.
struct Step {
  std::size_t node;                ///< index in the graph
  std::unique_ptr<NodePlan> plan;  ///< null: a view
  int aliased_input = -1;          ///< of a view
  bool empty = false;              ///< has no element to write: not run
};

/// Copies of weights that plans of one graph share, each charged once, until the last of those plans goes.
class SharedWeights {
 public:
  SharedWeights(MemoryCharge charge, int num_values) : charge_(std::move(charge)), charged_(num_values) {}
  void add(const char* what, ValueId value, std::size_t bytes) {
    if (charged_[value]) return;
    charge_.add(what, bytes);
    charged_[value] = true;
  }

 private:
  MemoryCharge charge_;
  std::vector<bool> charged_;  // by value
};

class ShapePlan {
 public:
  /// Infers, folds, plans and lays out. Graph and known values must outlive the plan. Nodes may share what depends on
  /// no shape with `sibling`, a plan of the same graph, which need not live on; null: none. Throws kOutOfMemory, before
  /// anything large is allocated, when what a run needs does not fit the budget of the known values.
  ShapePlan(const Graph& graph, const Registry& registry, const KnownValues& known, std::span<const TensorInfo> inputs,
            const ShapePlan* sibling = nullptr);

  const std::vector<Step>& steps() const { return steps_; }
  NodeRole role(std::size_t node) const { return roles_[node]; }
  const TensorInfo& info(ValueId value) const { return infos_[value]; }
  const std::vector<TensorInfo>& output_infos() const { return output_infos_; }
  std::size_t output_bytes() const;
  /// True when a node writes this output where the caller wants it; else the value is copied there, because it is an
  /// input, a constant, folded or a view, or leaves the graph under an earlier output's name too.
  bool output_is_written(std::size_t output) const { return output_is_written_[output]; }
  /// By output of the graph.
  const std::vector<ExtendedInput>& extended_inputs() const { return extended_inputs_; }
  const MemoryPlan& memory() const { return memory_; }
  /// The most that any node needs with so many workers.
  std::size_t workspace_bytes(int workers) const;
  /// What a run state takes beside the workspace: the arena and the tables of views.
  std::size_t state_bytes() const;
  /// A charge to the budget of the session.
  MemoryCharge new_charge() const { return MemoryCharge(known_.shared_budget()); }
  RunStatePool& pool() const { return pool_; }

  /// A state whose views show everything but the tensors of the caller.
  std::unique_ptr<RunState> make_state() const;

 private:
  NodeCase node_case(std::size_t node, const Registry& registry) const;
  void infer_nodes(const Registry& registry);
  void infer_one(std::size_t node, const Registry& registry);
  void infer_unneeded(std::size_t node, const Registry& registry);
  void mark_unused();
  void plan_nodes(const Registry& registry, const ConstantTable& fixed, const ShapePlan* sibling);
  void plan_values();
  void keep_constants();
  void check_sizes() const;
  void check_memory() const;
  void charge_node(const Step& step, std::uint64_t fixed);
  std::vector<int> last_uses() const;
  ValueId root(ValueId value) const;

  const Graph& graph_;
  ConstantTable known_;
  AlignedViews kept_;                      // constants in files that steps read as numbers
  std::vector<ConstTensorView> readable_;  // by value, as the steps read it; absent where not known
  std::vector<TensorInfo> infos_;          // by value
  std::vector<NodeRole> roles_;            // by node
  std::vector<int> aliased_inputs_;        // by node
  std::vector<ValueId> viewed_;            // by value; the value that a view shows, else kNoValue
  std::vector<Step> steps_;
  std::vector<TensorInfo> output_infos_;
  std::vector<bool> output_is_written_;
  std::vector<ExtendedInput> extended_inputs_;
  std::vector<ValueId> arena_values_;  // the values that the memory plan places, in its order
  MemoryPlan memory_;
  MemoryCharge charge_;                            // what this plan alone keeps
  std::shared_ptr<SharedWeights> shared_weights_;  // what plans at other shapes keep too
  mutable RunStatePool pool_;
};

}  // namespace headway
