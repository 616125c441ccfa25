// The session: puts validation, plan cache and execution together. Decides the order of the checks.
#include "headway/session.h"
#include "runtime/base/out_of_memory.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/exec/execute.h"
#include "runtime/exec/explain.h"
#include "runtime/exec/fold.h"
#include "runtime/exec/plan_cache.h"
#include "runtime/exec/validate.h"

namespace headway {
namespace {

/// A zone a node. They live as long as the session, not as a plan does: the address of a zone is its identity, and an
/// address that a later plan gets again would mix up two nodes.
std::vector<Zone> make_zones(const Graph& graph) {
  std::vector<Zone> zones;
  for (const Node& node : graph.nodes()) {
    zones.push_back({node.name.empty() ? node.op.c_str() : node.name.c_str(), "node"});
  }
  return zones;
}

const Graph& checked(const Graph& graph, const Registry& registry) {
  check_graph(graph, registry);
  return graph;
}

std::size_t checked_capacity(int capacity) {
  require(capacity >= 1, "plan_cache_capacity is ", capacity, ", expected 1 or more");
  return static_cast<std::size_t>(capacity);
}

}  // namespace

struct Session::Impl {
  Impl(Graph g, const Registry& r, const SessionOptions& options)
      : graph(std::move(g)),
        registry(r),
        rules(checked(graph, r)),
        budget(std::make_shared<MemoryBudget>(options.memory_limit_bytes)),
        constants(budget),
        known(charged(graph), r, budget),
        zones(make_zones(graph)),
        plans(checked_capacity(options.plan_cache_capacity)) {}

  /// Charges the constants that lie in memory of their own before anything is made of them.
  const Graph& charged(const Graph& of) {
    std::size_t bytes = 0;
    for (ValueId value = 0; value < of.num_values(); ++value) {
      const Tensor* constant = of.constant(value);
      if (constant == nullptr || constant->is_shared()) continue;
      bytes = saturating_sum(bytes, tensor_bytes(constant->type(), constant->dims()));
    }
    constants.add("the constants of the graph", bytes);
    return of;
  }

  /// Runs `work`; where it finds no memory, again without the plans of other shapes than that of `kept`.
  template <class Work>
  auto with_room(const ShapePlan* kept, Work&& work) {
    try {
      return work();
    } catch (const Error& error) {
      if (error.code() != kOutOfMemory || !plans.drop_others(kept)) throw;
    }
    return work();
  }
  std::shared_ptr<const ShapePlan> make_plan(std::span<const TensorInfo> inputs) {
    return plans.find_or_make(inputs, [&] {
      return with_room(nullptr, [&] {
        const std::shared_ptr<const ShapePlan> sibling = plans.newest();
        return std::make_shared<const ShapePlan>(graph, registry, known, inputs, sibling.get());
      });
    });
  }
  std::shared_ptr<const ShapePlan> plan(std::span<const TensorInfo> inputs) {
    rules.check_shapes(graph, inputs);
    auto found = plans.find(inputs);
    return found ? found : make_plan(inputs);
  }
  std::shared_ptr<const ShapePlan> plan(std::span<const ConstTensorView> inputs) {
    rules.check_shapes(graph, inputs);
    check_input_data(graph, inputs);
    if (auto found = plans.find(inputs)) return found;
    std::vector<TensorInfo> infos;
    for (const ConstTensorView& input : inputs) infos.push_back({input.type, input.dims, true});
    return make_plan(infos);
  }

  const Graph graph;
  const Registry& registry;
  const InputRules rules;
  const std::shared_ptr<MemoryBudget> budget;
  MemoryCharge constants;
  const KnownValues known;
  const std::vector<Zone> zones;
  PlanCache plans;
};

Session::Session(Graph graph, const Registry& registry, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(graph), registry, options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

const Graph& Session::graph() const { return impl_->graph; }

std::vector<TensorInfo> Session::output_infos(std::span<const TensorInfo> inputs) const {
  return impl_->plan(inputs)->output_infos();
}

void Session::run(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs, const Threads& threads,
                  Profiler* profiler) const {
  require(profiler == nullptr || profiler->workers() >= threads.workers(), "profiler has ",
          profiler == nullptr ? 0 : profiler->workers(), " workers, expected at least the ", threads.workers(),
          " of the run");
  const auto plan = impl_->plan(inputs);
  check_outputs(impl_->graph, plan->output_infos(), inputs, outputs);
  impl_->with_room(plan.get(), [&] {
    RunLease lease(plan, threads.workers());
    execute(impl_->graph, &lease, {inputs, outputs, threads, profiler, impl_->zones});
  });
}

std::vector<Tensor> Session::run(std::span<const ConstTensorView> inputs, const Threads& threads,
                                 Profiler* profiler) const {
  const auto plan = impl_->plan(inputs);
  MemoryCharge charge(impl_->budget);
  impl_->with_room(plan.get(), [&] { charge.add("the outputs of a run", plan->output_bytes()); });
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  for (const TensorInfo& info : plan->output_infos()) {
    tensors.emplace_back(info.type, info.dims);
    views.push_back(tensors.back().view());
  }
  run(inputs, views, threads, profiler);
  return tensors;
}

std::string Session::explain(std::span<const TensorInfo> inputs, int workers) const {
  require(workers >= 1, "workers is ", workers, ", expected 1 or more");
  return explain_plan(impl_->graph, *impl_->plan(inputs), workers);
}

}  // namespace headway
