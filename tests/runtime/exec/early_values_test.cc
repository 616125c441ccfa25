// What a plan settles before any run: values that follow from shapes, views, nodes that nothing needs, branches.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "headway/session.h"
#include "runtime/base/check.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

/// A FunctionOperator with the two answers that spare a run.
class EarlyOperator : public FunctionOperator {
 public:
  using FunctionOperator::FunctionOperator;
  std::function<DimList(const InferContext&)> known;
  int viewed = -1;
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    std::vector<ValueInfo> outputs = FunctionOperator::infer(node);
    if (known) outputs[0].elements = known(node);
    return outputs;
  }
  int aliased_input(const NodeContext&, std::span<const TensorInfo>) const override { return viewed; }
};

void must_not_run(const RunContext&, std::span<const ConstTensorView>, std::span<const TensorView>) {
  fail(ErrorCode::kInternal, "this must not run");
}

/// Count: the element count of its input. Twice: two times such a count, as f32. Flat: [n·m] over the same elements.
/// Wrong: shows too few.
class EarlyValues : public ::testing::Test {
 protected:
  EarlyValues() {
    auto count = std::make_unique<EarlyOperator>(
        "Count", FunctionOperator::Functions{[](const NodeContext&) {
                                               return std::vector<TensorInfo>{{DataType::kI64, Dims{1}}};
                                             },
                                             must_not_run});
    count->known = [](const InferContext& node) { return DimList{count_of(*node.inputs[0].dims)}; };
    registry_.add(std::make_unique<FunctionOperator>(
        "Twice", FunctionOperator::Functions{
                     [](const NodeContext&) {
                       return std::vector<TensorInfo>{{DataType::kF32, Dims{1}}};
                     },
                     [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
                       out[0].as<float>()[0] = 2 * static_cast<float>(in[0].as<std::int64_t>()[0]);
                     }}));
    registry_.add(std::move(count));
    const auto flat = [](const NodeContext& node) {
      return std::vector<TensorInfo>{{DataType::kF32, Dims{element_count(node.inputs[0].dims)}}};
    };
    auto view = std::make_unique<EarlyOperator>("Flat", FunctionOperator::Functions{flat, must_not_run});
    view->viewed = 0;
    registry_.add(std::move(view));
    auto wrong = std::make_unique<EarlyOperator>(
        "Wrong", FunctionOperator::Functions{[](const NodeContext&) {
                                               return std::vector<TensorInfo>{{DataType::kF32, Dims{1000}}};
                                             },
                                             must_not_run});
    wrong->viewed = 0;
    registry_.add(std::move(wrong));
    registry_.add(std::make_unique<FunctionOperator>("Double", double_functions()));
    registry_.add(std::make_unique<FunctionOperator>("Add", add_functions()));
    registry_.add(std::make_unique<FunctionOperator>("Trap", FunctionOperator::Functions{same_as_first, must_not_run}));
    registry_.add(std::make_unique<FunctionOperator>(
        "Either", FunctionOperator::Functions{
                      [](const NodeContext& node) {
                        return std::vector<TensorInfo>{node.inputs[0].present ? node.inputs[0] : node.inputs[1]};
                      },
                      [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
                        copy_elements(in[0] ? in[0] : in[1], out[0]);
                      }}));
  }

  std::string explain(const Session& session, const Dims& dims) {
    return session.explain(std::vector<TensorInfo>{{DataType::kF32, dims}}, 1);
  }

  Registry registry_;
};

TEST_F(EarlyValues, ValuesFollowTheShape) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  // Twice runs when the plan is made, since the count is known by then.
  graph.add_output("y", graph.add_node("Twice", "twice", {graph.add_node("Count", "count", {x})}));
  const Session session(std::move(graph), registry_);
  EXPECT_EQ(run_one(session, {input_of({1, 1, 1})}), std::vector<float>{6});
  EXPECT_EQ(run_one(session, {input_of({1, 1})}), std::vector<float>{4});
  EXPECT_EQ(run_one(session, {input_of({1, 1, 1})}), std::vector<float>{6});
  expect_contains(explain(session, {3}), "Twice 'twice' -> f32 [1]: folded");
}

TEST_F(EarlyValues, ViewsFollowTheRunsMemory) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n", "m"});
  const ValueId flat_input = graph.add_node("Flat", "flat_input", {x});
  const ValueId twice = graph.add_node("Double", "twice", {x});
  const ValueId flat = graph.add_node("Flat", "again", {graph.add_node("Flat", "flat", {twice})});
  const ValueId sum = graph.add_node("Add", "sum", {flat, flat_input});
  // More nodes between, which would get the memory of "twice" if its views did not keep it.
  ValueId other = sum;
  for (int i = 0; i < 3; ++i) other = graph.add_node("Double", "other", {other});
  graph.add_output("y", graph.add_node("Add", "late", {other, flat}));
  graph.add_output("flat", flat);
  graph.add_output("flat_input", flat_input);
  const Session session(std::move(graph), registry_);
  for (float start : {1.0f, 5.0f}) {
    const std::vector<float> values = {start, 2, 3, 4, 5, 6};
    const auto outputs = session.run(std::vector<ConstTensorView>{view_of(values.data(), {2, 3})}, Threads::serial());
    EXPECT_EQ(outputs[0].dims(), Dims{6});
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(outputs[0].data<float>()[i], 8 * 3 * values[i] + 2 * values[i]);
      EXPECT_EQ(outputs[1].data<float>()[i], 2 * values[i]);
      EXPECT_EQ(outputs[2].data<float>()[i], values[i]);
    }
  }
  expect_contains(explain(session, {2, 3}), "Flat 'flat' -> f32 [6]: a view");
}

TEST_F(EarlyValues, AViewKeepsTheMemoryItShows) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId flat = graph.add_node("Flat", "flat", {graph.add_node("Double", "twice", {x})});
  ValueId other = x;
  for (int i = 0; i < 4; ++i) other = graph.add_node("Double", "other", {other});
  graph.add_output("y", graph.add_node("Add", "late", {other, flat}));
  const Session session(std::move(graph), registry_);
  EXPECT_EQ(run_one(session, {input_of({1, 2})}), (std::vector<float>{18, 36}));
}

TEST_F(EarlyValues, AViewOfOtherElementsIsRefused) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Wrong", "w", {x}));
  const Session session(std::move(graph), registry_);
  expect_contains(error_of(
                      [&] {
                        run_one(session, {input_of({1, 2})});
                      },
                      ErrorCode::kInternal),
                  "node 'w' (Wrong) shows input 0 as [1000]");
}

TEST_F(EarlyValues, WhatNothingNeedsIsLeftOut) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_node("Double", "reads_trap", {graph.add_node("Trap", "trap", {x})});
  graph.add_output("y", graph.add_node("Double", "double", {x}));
  const Session session(std::move(graph), registry_);
  EXPECT_EQ(run_one(session, {input_of({4})}), std::vector<float>{8});
  expect_contains(explain(session, {1}), "Trap 'trap' -> f32 [1]: left out, nothing needs it");
}

/// x doubled where the condition holds, else four times x.
Graph branches(ValueId* condition, bool constant, bool wanted) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  if (constant) {
    auto tensor = std::make_shared<Tensor>(DataType::kBool, Dims{});
    *tensor->data<bool>() = wanted;
    *condition = graph.add_constant("condition", tensor);
  }
  std::size_t first = graph.nodes().size();
  const ValueId then = graph.add_node("Double", "then", {x});
  graph.guard_nodes(first, {*condition, true});
  first = graph.nodes().size();
  const ValueId otherwise = graph.add_node("Double", "else", {graph.add_node("Double", "inner", {x})});
  graph.guard_nodes(first, {*condition, false});
  graph.add_output("y", graph.add_node("Either", "either", {then, otherwise}));
  return graph;
}

TEST_F(EarlyValues, OnlyTheTakenBranchRuns) {
  for (bool wanted : {true, false}) {
    ValueId condition = kNoValue;
    const Session session(branches(&condition, true, wanted), registry_);
    EXPECT_EQ(run_one(session, {input_of({3})}), std::vector<float>{wanted ? 6.0f : 12.0f});
    expect_contains(explain(session, {1}), wanted ? "Double 'inner' -> absent: left out, in a branch"
                                                  : "Double 'then' -> absent: left out, in a branch");
  }
}

TEST_F(EarlyValues, AConditionIsOneBool) {
  ValueId condition = 0;  // the input x, which is not known: both branches count
  const Session unknown(branches(&condition, false, true), registry_);
  EXPECT_EQ(run_one(unknown, {input_of({3})}), std::vector<float>{6});

  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId c = graph.add_constant("c", tensor_of({1, 0}));
  graph.add_output("y", graph.add_node("Double", "guarded", {x}));
  graph.guard_nodes(0, {c, true});
  const auto make = [&] { run_one(Session(graph, registry_), {input_of({1})}); };
  expect_contains(error_of(make), "node 'guarded': its condition is f32 [2], expected one bool");
  expect_contains(error_of([&] { graph.guard_nodes(0, {99, true}); }), "guard is value 99");
}

TEST(SharedTensor, ReadsMemoryOfOthersAndNeverWritesIt) {
  auto memory = std::make_shared<std::array<float, 4>>(std::array<float, 4>{1, 2, 3, 4});
  const std::shared_ptr<const std::byte> bytes(memory, reinterpret_cast<const std::byte*>(memory->data()));
  Tensor tensor = Tensor::shared(DataType::kF32, {4}, bytes);
  EXPECT_EQ(std::as_const(tensor).data<float>(), memory->data());
  expect_contains(error_of([&] { tensor.view(); }), "read-only");
  error_of([] { Tensor::shared(DataType::kF32, {4}, nullptr); });
  const std::shared_ptr<const std::byte> odd(memory, bytes.get() + 1);
  expect_contains(error_of([&] { Tensor::shared(DataType::kF32, {3}, odd); }), "not aligned");
}

}  // namespace
}  // namespace headway::testing
