// The session: puts validation, plan cache and execution together. Decides the order of the checks.
#include "headway/session.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/exec/execute.h"
#include "runtime/exec/explain.h"
#include "runtime/exec/fold.h"
#include "runtime/exec/plan_cache.h"
#include "runtime/exec/session_names.h"
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
  Impl(Graph g, const Registry& r, const SessionOptions& o)
      : graph(std::move(g)),
        registry(r),
        options(o),
        rules(checked(graph, r)),
        names(graph),
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
      if (error.code() != ErrorCode::kOutOfMemory || !plans.drop_others(kept)) throw;
    } catch (const std::bad_alloc&) {
      if (!plans.drop_others(kept)) throw;
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

  /// Null until it is needed.
  Impl* made_source() {
    const std::lock_guard<std::mutex> lock(source_mutex);
    return source_impl.get();
  }
  /// The graph that this one was rewritten from, made ready when it is first needed.
  Impl& source() {
    const std::lock_guard<std::mutex> lock(source_mutex);
    if (source_impl == nullptr) source_impl = std::make_unique<Impl>(Graph(*graph.source()), registry, options);
    return *source_impl;
  }

  const Graph graph;
  const Registry& registry;
  const SessionOptions options;
  const InputRules rules;
  const SessionNames names;
  const std::shared_ptr<MemoryBudget> budget;
  MemoryCharge constants;
  const KnownValues known;
  const std::vector<Zone> zones;
  PlanCache plans;
  std::mutex source_mutex;
  std::unique_ptr<Impl> source_impl;
};

/// A plan and the graph that it is of.
struct Session::Planned {
  Impl& impl;
  std::shared_ptr<const ShapePlan> plan;
};

namespace {

std::vector<TensorInfo> infos_of(std::span<const TensorInfo> inputs) { return {inputs.begin(), inputs.end()}; }
std::vector<TensorInfo> infos_of(std::span<const ConstTensorView> inputs) {
  std::vector<TensorInfo> infos;
  for (const ConstTensorView& input : inputs) infos.push_back({input.type, input.dims, true});
  return infos;
}

void check_data(const Graph&, std::span<const TensorInfo>) {}
void check_data(const Graph& graph, std::span<const ConstTensorView> inputs) { check_input_data(graph, inputs); }

}  // namespace

/// A rewritten graph may take equal names for equal sizes and may have no words for what is wrong at these shapes: then
/// its source decides.
template <class T>
Session::Planned Session::plan(std::span<const T> inputs) const {
  Impl& impl = *impl_;
  impl.rules.check_shapes(impl.graph, inputs);
  check_data(impl.graph, inputs);
  const bool rewritten = impl.graph.source() != nullptr;
  if (!rewritten || impl.rules.names_hold(inputs)) {
    if (auto found = impl.plans.find(inputs)) return {impl, std::move(found)};
    // A shape that went to the source once goes there again.
    Impl* const source = impl.made_source();
    if (auto found = source != nullptr ? source->plans.find(inputs) : nullptr) return {*source, std::move(found)};
    try {
      return {impl, impl.make_plan(infos_of(inputs))};
    } catch (const Error& error) {
      const bool of_shapes = error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported;
      if (!rewritten || !of_shapes) throw;
    }
  }
  Impl& source = impl.source();
  auto found = source.plans.find(inputs);
  return {source, found ? std::move(found) : source.make_plan(infos_of(inputs))};
}

Session::Session(Graph graph, const Registry& registry, const SessionOptions& options)
    : impl_(translate_bad_alloc([&] { return std::make_unique<Impl>(std::move(graph), registry, options); })) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Graph& Session::graph() const { return impl_->graph; }
const std::vector<InputInfo>& Session::input_infos() const { return impl_->names.input_infos(); }
const std::vector<std::string>& Session::input_names() const { return impl_->names.inputs().names(); }
const std::vector<std::string>& Session::output_names() const { return impl_->names.outputs().names(); }
std::size_t Session::input_index(std::string_view name) const {
  return translate_bad_alloc([&] { return impl_->names.inputs().index(name); });
}
std::size_t Session::output_index(std::string_view name) const {
  return translate_bad_alloc([&] { return impl_->names.outputs().index(name); });
}

std::vector<TensorInfo> Session::output_infos(std::span<const TensorInfo> inputs) const {
  return translate_bad_alloc([&] { return plan(inputs).plan->output_infos(); });
}

void Session::run(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs, const Threads& threads,
                  Profiler* profiler, void* host) const try {
  require(profiler == nullptr || profiler->workers() >= threads.workers(), "profiler has ",
          profiler == nullptr ? 0 : profiler->workers(), " workers, expected at least the ", threads.workers(),
          " of the run");
  const Planned planned = plan(inputs);
  check_outputs(planned.impl.graph, planned.plan->output_infos(), planned.plan->extended_inputs(), inputs, outputs);
  planned.impl.with_room(planned.plan.get(), [&] {
    RunLease lease(planned.plan, threads.workers());
    execute(planned.impl.graph, &lease, {inputs, outputs, threads, profiler, host, planned.impl.zones});
  });
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

std::vector<Tensor> Session::run(std::span<const ConstTensorView> inputs, const Threads& threads, Profiler* profiler,
                                 void* host) const try {
  const Planned planned = plan(inputs);
  MemoryCharge charge(planned.impl.budget);
  planned.impl.with_room(planned.plan.get(), [&] { charge.add("the outputs of a run", planned.plan->output_bytes()); });
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  for (const TensorInfo& info : planned.plan->output_infos()) {
    tensors.emplace_back(info.type, info.dims);
    views.push_back(tensors.back().view());
  }
  run(inputs, views, threads, profiler, host);
  return tensors;
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

void Session::run(std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs, const Threads& threads,
                  Profiler* profiler, void* host) const try {
  run(impl_->names.inputs().ordered(inputs), impl_->names.outputs().ordered(outputs), threads, profiler, host);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

std::vector<Tensor> Session::run(std::span<const NamedInput> inputs, const Threads& threads, Profiler* profiler,
                                 void* host) const try {
  return run(impl_->names.inputs().ordered(inputs), threads, profiler, host);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

std::string Session::explain(std::span<const TensorInfo> inputs, int workers) const {
  require(workers >= 1, "workers is ", workers, ", expected 1 or more");
  return translate_bad_alloc([&] {
    const Planned planned = plan(inputs);
    return explain_plan(planned.impl.graph, *planned.plan, workers);
  });
}

}  // namespace headway
