// The cache of shape plans: bounded, least recently used first, and eviction under a running plan.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "headway/session.h"
#include "runtime/exec/fold.h"
#include "runtime/exec/memory_budget.h"
#include "runtime/exec/plan_cache.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/allocation_counter.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

std::vector<float> run_length(const Session& session, int n) {
  const std::vector<float> input(static_cast<std::size_t>(n), 2.0f);
  return run_one(session, {input_of(input)});
}

TEST(PlanCache, LeastRecentlyUsedGoesFirst) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), {2});
  run_length(session, 1);
  run_length(session, 2);
  run_length(session, 1);
  EXPECT_EQ(registry.plans("Add"), 2);
  run_length(session, 3);  // puts 2 out
  EXPECT_EQ(registry.plans("Add"), 3);
  run_length(session, 1);
  run_length(session, 3);
  EXPECT_EQ(registry.plans("Add"), 3);
  run_length(session, 2);
  EXPECT_EQ(registry.plans("Add"), 4);
}

/// Copies x; notes what its plans were told of the constant and of each other.
class Telltale : public Operator {
 public:
  explicit Telltale(std::vector<std::string>* told) : told_(told) {}
  std::string_view name() const override { return "Telltale"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override { return {node.inputs[0]}; }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    std::string text = node.sibling == nullptr ? "alone" : "after another";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) text += node.is_fixed(i) ? ", fixed" : ", free";
    told_->push_back(text);
    return std::make_unique<Plan>();
  }

 private:
  struct Plan : NodePlan {
    void run(const RunContext&, std::span<const ConstTensorView> inputs,
             std::span<const TensorView> outputs) const override {
      copy_elements(inputs[0], outputs[0]);
    }
  };
  std::vector<std::string>* told_;
};

TEST(PlanCache, ANewShapeSeesThePlansOfAnother) {
  std::vector<std::string> told;
  Registry registry;
  registry.add(std::make_unique<Telltale>(&told));
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {std::string("n")});
  const ValueId c = graph.add_constant("c", std::make_shared<const Tensor>(DataType::kF32, Dims{3}));
  graph.add_output("y", graph.add_node("Telltale", "t", {x, c}));
  const Session session(std::move(graph), registry, {1});
  run_length(session, 1);
  run_length(session, 2);
  run_length(session, 2);
  EXPECT_EQ(told, (std::vector<std::string>{"alone, free, fixed", "after another, free, fixed"}));
}

TEST(PlanCache, CapacityOne) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), {1});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run_length(session, 1), std::vector<float>(1, 6.0f));
    EXPECT_EQ(run_length(session, 1), std::vector<float>(1, 6.0f));
    EXPECT_EQ(run_length(session, 2), std::vector<float>(2, 6.0f));
  }
  EXPECT_EQ(registry.plans("Add"), 6);
}

/// Counts how many plans are alive.
struct LivePlan : NodePlan {
  std::shared_ptr<std::atomic<int>> alive;
  explicit LivePlan(std::shared_ptr<std::atomic<int>> counter) : alive(std::move(counter)) { ++*alive; }
  ~LivePlan() override { --*alive; }
  void run(const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) const override {
    copy_elements(in[0], out[0]);
  }
};
struct LiveOperator : Operator {
  std::shared_ptr<std::atomic<int>> alive = std::make_shared<std::atomic<int>>(0);
  std::string_view name() const override { return "Live"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override { return {node.inputs[0]}; }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override {
    return std::make_unique<LivePlan>(alive);
  }
};

TEST(PlanCache, TenThousandShapesKeepNoMoreThanTheBound) {
  auto op = std::make_unique<LiveOperator>();
  const auto alive = op->alive;
  Registry registry;
  registry.add(std::move(op));
  Graph graph;
  graph.add_output("y", graph.add_node("Live", "n", {graph.add_input("x", DataType::kF32, {"a", "b"})}));
  {
    const Session session(std::move(graph), registry, {5});
    for (std::int64_t i = 0; i < 10000; ++i) {
      session.output_infos(std::vector<TensorInfo>{{DataType::kF32, {i % 100, i / 100}}});
      ASSERT_LE(*alive, 6);
    }
    EXPECT_EQ(*alive, 5);
  }
  EXPECT_EQ(*alive, 0);
}

TEST(PlanCache, APlanInUseSurvivesItsEviction) {
  TestRegistry registry;
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool released = false;
  registry.add("Wait", {same_as_first,
                        [&](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
                          if (in[0].count() == 3) {
                            std::unique_lock lock(mutex);
                            inside = true;
                            changed.notify_all();
                            changed.wait(lock, [&] { return released; });
                          }
                          copy_elements(in[0], out[0]);
                        }});
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId waited = graph.add_node("Wait", "wait", {graph.add_node("Double", "before", {x})});
  graph.add_output("y", graph.add_node("Double", "after", {waited}));
  const Session session(std::move(graph), registry.get(), {1});
  std::vector<float> result;
  std::thread runner([&] { result = run_length(session, 3); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  for (int n : {1, 2, 4}) EXPECT_EQ(run_length(session, n), std::vector<float>(static_cast<std::size_t>(n), 8.0f));
  {
    const std::lock_guard lock(mutex);
    released = true;
  }
  changed.notify_all();
  runner.join();
  EXPECT_EQ(result, std::vector<float>(3, 8.0f));
}

// It allocated under its lock, so that no room was made where there was none.
TEST(PlanCache, ForgettingOthersAllocatesNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "malloc cannot be replaced in this build";
  TestRegistry registry;
  const Graph graph = triple_graph();
  const KnownValues known(graph, registry.get(), std::make_shared<MemoryBudget>(std::nullopt));
  PlanCache cache(3);
  for (const std::int64_t length : {3, 4, 5}) {
    const std::vector<TensorInfo> infos = {{DataType::kF32, {length}, true}};
    cache.find_or_make(infos, [&] {
      return std::make_shared<const ShapePlan>(graph, registry.get(), known, std::span<const TensorInfo>(infos),
                                               nullptr);
    });
  }
  const std::shared_ptr<const ShapePlan> kept = cache.newest();
  AllocationCounter counter;
  const bool dropped = cache.drop_others(kept.get());
  EXPECT_EQ(counter.stop(), 0);
  EXPECT_TRUE(dropped);
  EXPECT_FALSE(cache.drop_others(kept.get()));
  EXPECT_EQ(cache.newest(), kept);
}

}  // namespace
}  // namespace headway::testing
