// An output that a caller binds over the input it extends: used where it lies, whatever its strides, and refused where
// another node would notice.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/allocation_counter.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

/// state [r, n], fresh [r, m] → [r, n + m]: the state with what is fresh behind it. With attribute "within" an output
/// of n columns has it in the last ones of the state.
class AppendOperator : public Operator {
 public:
  std::string_view name() const override { return "Append"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    TensorInfo out = tensor_info(node.inputs[0]);
    out.dims[1] += tensor_info(node.inputs[1]).dims[1];
    return {value_info(out)};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    auto plan = std::make_unique<Plan>();
    plan->within = node.attributes.integer("within", 0) != 0;
    return plan;
  }

 private:
  struct Plan : NodePlan {
    bool within = false;
    ExtendedInput extended_input(std::size_t) const override { return {0, within}; }
    void run(const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) const override {
      const std::int64_t old = in[0].dims[1], columns = out[0].dims[1], fresh = in[1].dims[1];
      require(in[0].data == out[0].data || (in[0].is_contiguous() && out[0].is_contiguous()), "a view is strided");
      if (in[0].data != out[0].data) copy_elements(in[0], out[0].sliced(1, 0, old));
      copy_elements(in[1], out[0].sliced(1, columns - fresh, columns));
    }
  };
};

/// state [2, n] and fresh [2, m] → y, and whatever a test adds.
class InPlace : public ::testing::Test {
 protected:
  Graph graph(bool within = false) {
    Graph graph;
    state_ = graph.add_input("state", DataType::kF32, {2, "n"});
    const ValueId fresh = graph.add_input("fresh", DataType::kF32, {2, "m"});
    y_ = graph.add_node("Append", "append", {state_, fresh}, {{"within", std::int64_t{within}}});
    graph.add_output("y", y_);
    return graph;
  }
  void SetUp() override {
    registry_.add(std::make_unique<AppendOperator>());
    registry_.add(std::make_unique<FunctionOperator>("Double", double_functions()));
    std::iota(buffer_, buffer_ + 12, 0.0f);
  }
  /// Columns [first, last) of two rows of six.
  TensorView columns(std::int64_t first, std::int64_t last) {
    return view_of(buffer_ + first, {2, last - first}, {6, 1});
  }
  void run(const Session& session, const TensorView& state, const TensorView& y) {
    const ConstTensorView inputs[] = {state, view_of(fresh_, {2, 2})};
    session.run(inputs, {&y, 1}, Threads::serial());
  }
  std::string refused(Graph graph, const TensorView& state, const std::vector<TensorView>& outputs) {
    const Session session(std::move(graph), registry_);
    const ConstTensorView inputs[] = {state, view_of(fresh_, {2, 2})};
    return error_of([&] { session.run(inputs, outputs, Threads::serial()); });
  }
  std::vector<float> buffer() const { return {buffer_, buffer_ + 12}; }

  Registry registry_;
  ValueId state_ = kNoValue, y_ = kNoValue;
  float buffer_[12];
  const float fresh_[4] = {-1, -2, -3, -4};
};

TEST_F(InPlace, WhatIsNewIsWrittenIntoTheBuffer) {
  const Session session(graph(), registry_);
  run(session, columns(0, 3), columns(0, 5));
  EXPECT_EQ(buffer(), (std::vector<float>{0, 1, 2, -1, -2, 5, 6, 7, 8, -3, -4, 11}));
}

TEST_F(InPlace, TheBufferItselfMayBeBoth) {
  const Session session(graph(true), registry_);
  run(session, columns(0, 6), columns(0, 6));
  EXPECT_EQ(buffer(), (std::vector<float>{0, 1, 2, 3, -1, -2, 6, 7, 8, 9, -3, -4}));
  expect_contains(refused(graph(), columns(0, 6), {columns(0, 6)}), "output 'y' is [2, 6], expected [2, 8]");
}

TEST_F(InPlace, ApartItIsACopy) {
  const Session session(graph(true), registry_);
  float y[10] = {};
  run(session, columns(0, 3), view_of(y, {2, 5}));
  EXPECT_EQ(std::vector<float>(y, y + 10), (std::vector<float>{0, 1, 2, -1, -2, 6, 7, 8, -3, -4}));
  // One of fewer columns has no place for what is new unless it is the state.
  expect_contains(refused(graph(true), columns(0, 3), {view_of(y, {2, 3})}), "output 'y' is [2, 3], expected [2, 5]");
}

TEST_F(InPlace, OtherOverlapsAreRefused) {
  const char* const error =
      "output 'y' overlaps input 'state', expected apart from it or of its first element and strides";
  expect_contains(refused(graph(), columns(1, 4), {columns(0, 5)}), error);
  expect_contains(refused(graph(), columns(0, 3), {view_of(buffer_, {2, 5}, {5, 1})}), error);
  const TensorView one_row = view_of(buffer_, {2, 3}, {0, 1});
  expect_contains(refused(graph(), one_row, {view_of(buffer_, {2, 5}, {0, 1})}), "y overlaps itself");
  float wide[24];
  expect_contains(refused(graph(), view_of(wide, {2, 3}, {12, 2}), {view_of(wide, {2, 5}, {12, 2})}), error);
  EXPECT_EQ(buffer()[3], 3);
}

TEST_F(InPlace, AStateThatAnotherReadsStaysAsItIs) {
  Graph g = graph();
  g.add_output("twice", g.add_node("Double", "double", {state_}));
  float twice[6];
  expect_contains(refused(std::move(g), columns(0, 3), {columns(0, 5), view_of(twice, {2, 3})}),
                  "output 'y' overlaps input 'state'");
  g = graph();
  g.add_output("same", state_);
  expect_contains(refused(std::move(g), columns(0, 3), {columns(0, 5), view_of(twice, {2, 3})}),
                  "output 'y' overlaps input 'state'");
}

TEST_F(InPlace, AnOutputThatAnotherReadsIsAsPlanned) {
  Graph g = graph(true);
  g.add_output("twice", g.add_node("Double", "double", {y_}));
  float twice[10];
  expect_contains(refused(std::move(g), columns(0, 3), {columns(0, 5), view_of(twice, {2, 5})}),
                  "output 'y' overlaps input 'state'");
  g = graph();
  g.add_output("again", y_);
  expect_contains(refused(std::move(g), columns(0, 3), {columns(0, 5), view_of(twice, {2, 5})}),
                  "output 'y' overlaps input 'state'");
}

TEST_F(InPlace, AllocatesNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "malloc cannot be replaced in this build";
  const Session session(graph(), registry_);
  run(session, columns(0, 3), columns(0, 5));
  AllocationCounter counter;
  run(session, columns(0, 3), columns(0, 5));
  EXPECT_EQ(counter.stop(), 0);
}

}  // namespace
}  // namespace headway::testing
