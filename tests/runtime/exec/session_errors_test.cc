// Every refusal of a session, its message, and that the outputs are untouched after it.
#include <gtest/gtest.h>

#include <cstring>

#include "headway/session.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

class SessionErrors : public ::testing::Test {
 protected:
  SessionErrors() : session_(make_graph(), registry_.get()), y_(6, -77.0f) {}

  /// Two inputs that share "n" and "m"; the second one has a fixed axis too.
  static Graph make_graph() {
    Graph graph;
    const ValueId a = graph.add_input("a", DataType::kF32, {"n", "m"});
    const ValueId b = graph.add_input("b", DataType::kF32, {"m", std::int64_t{3}, "n"});
    graph.add_output("y", graph.add_node("Picky", "picky", {graph.add_node("Double", "double", {a})}));
    graph.add_output("z", graph.add_node("Double", "z", {b}));
    return graph;
  }

  /// The error of running with these tensors; checks that nothing was written.
  std::string error(const std::vector<ConstTensorView>& inputs, const std::vector<TensorView>& outputs) {
    const std::vector<float> y = y_;
    const std::string text = error_of([&] { session_.run(inputs, outputs, Threads::serial()); });
    EXPECT_EQ(y_, y);
    EXPECT_EQ(registry_.runs("Double"), 0);
    return text;
  }
  ConstTensorView a(const Dims& dims) const { return view_of(a_, dims); }
  ConstTensorView b(const Dims& dims) const { return view_of(b_, dims); }
  TensorView y(const Dims& dims) { return view_of(y_.data(), dims); }
  TensorView z(const Dims& dims) { return view_of(z_, dims); }
  std::string input_error(const ConstTensorView& first, const ConstTensorView& second) {
    return error({first, second}, {y({2, 3}), z({3, 3, 2})});
  }
  std::string output_error(const TensorView& first, const TensorView& second) {
    return error({a({2, 3}), b({3, 3, 2})}, {first, second});
  }

  TestRegistry registry_;
  Session session_;
  float a_[64] = {};
  float b_[64] = {};
  float z_[64] = {};
  std::vector<float> y_;
};

TEST_F(SessionErrors, TheRightTensorsRun) {
  session_.run(std::vector<ConstTensorView>{a({2, 3}), b({3, 3, 2})}, std::vector<TensorView>{y({2, 3}), z({3, 3, 2})},
               Threads::serial());
  EXPECT_EQ(y_, std::vector<float>(6, 0.0f));
}

TEST_F(SessionErrors, NumberOfInputs) {
  expect_contains(error({a({2, 3})}, {y({2, 3}), z({3, 3, 2})}), "run got 1 inputs, expected 2");
  expect_contains(error_of([&] { session_.output_infos({}); }), "run got 0 inputs, expected 2");
}

TEST_F(SessionErrors, Types) {
  double wide[6] = {};
  expect_contains(input_error(view_of(wide, {2, 3}), b({3, 3, 2})), "input 'a' is f64, expected f32");
}

TEST_F(SessionErrors, Ranks) {
  const std::string text = input_error(a({2, 3, 1}), b({3, 3, 2}));
  expect_contains(text, "input 'a' is [2, 3, 1] of rank 3, expected rank 2");
}

TEST_F(SessionErrors, FixedDims) {
  expect_contains(input_error(a({2, 3}), b({3, 4, 2})), "input 'b' axis 1 is 4, expected 3");
}

TEST_F(SessionErrors, EqualNamesOfTwoSizesRunWhereNoOperatorMinds) {
  session_.run(std::vector<ConstTensorView>{a({2, 3}), b({3, 3, 5})}, std::vector<TensorView>{y({2, 3}), z({3, 3, 5})},
               Threads::serial());
  EXPECT_EQ(y_, std::vector<float>(6, 0.0f));
}

TEST(SessionOfARewrittenGraph, LeavesToItsSourceWhatItCannotDecide) {
  TestRegistry registry;
  const auto make = [](const char* op) {
    Graph graph;
    const ValueId a = graph.add_input("a", DataType::kF32, {"n"});
    const ValueId b = graph.add_input("b", DataType::kF32, {"n"});
    graph.add_output("y", graph.add_node(op, op, {a, b}));
    return graph;
  };
  registry.add("Rewritten", {[](const NodeContext& node) {
                               require(node.inputs[0].dims[0] != 3, "three is too many");
                               return std::vector<TensorInfo>{node.inputs[0]};
                             },
                             [](const RunContext&, std::span<const ConstTensorView>, std::span<const TensorView> out) {
                               std::fill_n(out[0].as<float>(), out[0].count(), -1.0f);
                             }});
  Graph graph = make("Rewritten");
  graph.set_source(std::make_shared<const Graph>(make("Add")));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(run_one(session, {input_of({1, 2}), input_of({1, 2})}), (std::vector<float>{-1, -1}));
  EXPECT_EQ(run_one(session, {input_of({1, 2, 3}), input_of({1, 2, 3})}), (std::vector<float>{2, 4, 6}));
  // Two sizes of one name: the words are the source's.
  expect_contains(error_of([&] {
                    run_one(session, {input_of({1, 2}), input_of({1})});
                  }),
                  "node 'Add' (Add): b is [1], expected [2] as a");
}

TEST_F(SessionErrors, NegativeAndHugeDims) {
  ConstTensorView negative = a({2, 3});
  negative.dims[1] = -3;
  expect_contains(input_error(negative, b({3, 3, 2})), "input 'a' axis 1 is -3");
  ConstTensorView huge = a({2, 3});
  huge.dims = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  expect_contains(input_error(huge, b({3, 3, 2})), "63 bits");
}

TEST_F(SessionErrors, AbsentAndMissingData) {
  expect_contains(input_error(ConstTensorView(), b({3, 3, 2})), "input 'a' is absent");
  expect_contains(input_error(a({2, 3}), ConstTensorView(nullptr, DataType::kF32, {3, 3, 2})),
                  "input 'b' [3, 3, 2] has no memory");
  expect_contains(output_error(TensorView(), z({3, 3, 2})), "output 'y' is absent");
  expect_contains(output_error(y({2, 3}), TensorView(nullptr, DataType::kF32, {3, 3, 2})),
                  "output 'z' [3, 3, 2] has no memory");
}

TEST_F(SessionErrors, MisalignedData) {
  ConstTensorView off = a({2, 3});
  off.data += 2;
  expect_contains(input_error(off, b({3, 3, 2})), "input 'a' lies 2 bytes beside a multiple of 4");
}

TEST_F(SessionErrors, StridesOfAnotherRank) {
  ConstTensorView odd = a({2, 3});
  odd.strides = {1};
  expect_contains(input_error(odd, b({3, 3, 2})), "input 'a' has 1 strides, expected 2");
}

TEST_F(SessionErrors, Outputs) {
  expect_contains(error({a({2, 3}), b({3, 3, 2})}, {y({2, 3})}), "run got 1 outputs, expected 2");
  expect_contains(output_error(y({3, 2}), z({3, 3, 2})), "output 'y' is [3, 2], expected [2, 3]");
  std::int32_t integers[18] = {};
  expect_contains(output_error(y({2, 3}), view_of(integers, {3, 3, 2})), "output 'z' is i32, expected f32");
}

TEST_F(SessionErrors, Aliasing) {
  expect_contains(output_error(view_of(b_ + 17, {2, 3}), z({3, 3, 2})), "output 'y' overlaps input 'b'");
  expect_contains(output_error(view_of(z_ + 2, {2, 3}), z({3, 3, 2})), "output 'z' overlaps output 'y'");
}

TEST_F(SessionErrors, StridedOutputsAreHeldAgainstInputsToo) {
  // Rows of three columns in rows of six, of which the input has the first or the last three.
  float wide[12] = {};
  const ConstTensorView first(reinterpret_cast<const std::byte*>(wide), DataType::kF32, {2, 3}, {6, 1});
  expect_contains(error({first, b({3, 3, 2})}, {view_of(wide + 2, {2, 3}, {6, 1}), z({3, 3, 2})}),
                  "output 'y' overlaps input 'a'");
  session_.run(std::vector<ConstTensorView>{first, b({3, 3, 2})},
               std::vector<TensorView>{view_of(wide + 3, {2, 3}, {6, 1}), z({3, 3, 2})}, Threads::serial());
}

TEST_F(SessionErrors, NeighboursDoNotOverlap) {
  session_.run(std::vector<ConstTensorView>{a({2, 3}), b({3, 3, 2})},
               std::vector<TensorView>{view_of(b_ + 18, {2, 3}), z({3, 3, 2})}, Threads::serial());
}

TEST_F(SessionErrors, ProfilerWithTooFewWorkers) {
  Profiler profiler({1, 0});
  const auto run = [&] {
    session_.run(std::vector<ConstTensorView>{a({2, 3}), b({3, 3, 2})}, Threads::openmp(2), &profiler);
  };
  expect_contains(error_of(run), "profiler has 1 workers, expected at least the 2");
}

TEST_F(SessionErrors, AnErrorOfANodeNamesIt) {
  a_[0] = -1;
  const auto run = [&] { session_.run(std::vector<ConstTensorView>{a({2, 3}), b({3, 3, 2})}, Threads::serial()); };
  expect_contains(error_of(run), "node 'picky' (Picky): x[0] is -2, expected 0 or more");
  a_[0] = 1;
  run();  // and its workspace is back in the pool
}

TEST(SessionConstruction, UnknownOperatorsAreListedAtOnce) {
  TestRegistry registry;
  Graph graph;
  ValueId x = graph.add_input("x", DataType::kF32, {});
  x = graph.add_node("Gelu", "g1", {x});
  x = graph.add_node("Double", "fine", {x});
  x = graph.add_node("Erf", "e", {x});
  graph.add_output("y", graph.add_node("Gelu", "g2", {x}));
  const std::string text =
      error_of([&] { Session session(std::move(graph), registry.get()); }, ErrorCode::kUnsupported);
  expect_contains(text, "2 unknown operators: Erf (node 'e'), Gelu (node 'g1', 'g2')");
  expect_lacks(text, "Double");
}

TEST(SessionConstruction, Refusals) {
  TestRegistry registry;
  Graph none;
  none.add_input("x", DataType::kF32, {});
  expect_contains(error_of([&] { Session session(none, registry.get()); }), "graph has 0 outputs");
  expect_contains(error_of([&] { Session session(triple_graph(), registry.get(), {0}); }),
                  "plan_cache_capacity is 0, expected 1 or more");
}

TEST(SessionConstruction, AConstantThatCannotBeFoldedNamesItsNode) {
  TestRegistry registry;
  Graph graph;
  const ValueId c = graph.add_constant("c", tensor_of({-1}));
  graph.add_output("y", graph.add_node("Picky", "p", {c}));
  expect_contains(error_of([&] { Session session(std::move(graph), registry.get()); }), "node 'p' (Picky): x[0] is -1");
}

TEST(SessionPlanning, InferenceErrorsNameTheNode) {
  TestRegistry registry;
  Graph graph;
  const ValueId a = graph.add_input("a", DataType::kF32, {"n"});
  const ValueId b = graph.add_input("b", DataType::kF32, {"m"});
  graph.add_output("y", graph.add_node("Add", "sum", {a, b}));
  const Session session(std::move(graph), registry.get());
  expect_contains(error_of([&] {
                    run_one(session, {input_of({1, 2}), input_of({1})});
                  }),
                  "node 'sum' (Add): b is [1], expected [2] as a");
  EXPECT_EQ(run_one(session, {input_of({1}), input_of({1})}), std::vector<float>{2});
}

TEST(SessionPlanning, FaultyOperators) {
  TestRegistry registry;
  const RunFunction nothing = [](const RunContext&, std::span<const ConstTensorView>, std::span<const TensorView>) {};
  registry.add("Short", {[](const NodeContext&) { return std::vector<TensorInfo>{}; }, nothing});
  registry.add("Negative", {[](const NodeContext&) {
                              return std::vector<TensorInfo>{{DataType::kF32, Dims{-1}}};
                            },
                            nothing});
  for (const char* op : {"Short", "Negative"}) {
    Graph graph;
    graph.add_output("y", graph.add_node(op, "n", {graph.add_input("x", DataType::kF32, {"n"})}));
    const Session session(std::move(graph), registry.get());
    const bool is_short = std::string(op) == "Short";
    expect_contains(error_of([&] { run_one(session, {input_of({1})}); },
                             is_short ? ErrorCode::kInternal : ErrorCode::kInvalidArgument),
                    is_short ? "inferred 0 outputs, expected 1" : "axis 0 of [-1] is -1");
  }
}

}  // namespace
}  // namespace headway::testing
