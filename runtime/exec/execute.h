// One run over a shape plan: binds the caller's tensors, runs the steps, copies what could not be written in place.
// Expects arguments that have been checked.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headway/graph.h"
#include "headway/profiler.h"
#include "headway/threads.h"
#include "runtime/exec/shape_plan.h"

namespace headway {

/// A run state on loan from a plan's pool; its workspace is enough for `workers`. Keeps the plan alive.
class RunLease {
 public:
  RunLease(std::shared_ptr<const ShapePlan> plan, int workers);
  ~RunLease();
  RunLease(const RunLease&) = delete;
  RunLease& operator=(const RunLease&) = delete;
  const ShapePlan& plan() const { return *plan_; }
  RunState& state() { return *state_; }

 private:
  std::shared_ptr<const ShapePlan> plan_;
  std::unique_ptr<RunState> state_;
};

struct RunArgs {
  std::span<const ConstTensorView> inputs;
  std::span<const TensorView> outputs;
  const Threads& threads;
  Profiler* profiler;
  void* host;
  std::span<const Zone> zones;  ///< by node of the graph
};

void execute(const Graph& graph, RunLease* lease, const RunArgs& args);

}  // namespace headway
