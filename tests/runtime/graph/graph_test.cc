// Graphs as data, and every refusal while building one.
#include "headway/graph.h"

#include <gtest/gtest.h>

#include "tests/runtime/error_of.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

TEST(Graph, KeepsWhatItWasGiven) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"batch", std::int64_t{4}});
  auto tensor = std::make_shared<Tensor>(DataType::kF32, Dims{4});
  const ValueId c = graph.add_constant("c", tensor);
  const auto outputs = graph.add_node("Op", "n", {x, kNoValue, c}, {{"axis", std::int64_t{1}}}, 3);
  graph.add_output("y", outputs[1]);

  EXPECT_EQ(graph.num_values(), 5);
  EXPECT_EQ(graph.constant(c), tensor.get());
  EXPECT_EQ(graph.constant(x), nullptr);
  EXPECT_EQ(graph.value_name(outputs[0]), "n");
  EXPECT_EQ(graph.value_name(outputs[2]), "n:2");
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0].inputs, (std::vector<ValueId>{x, kNoValue, c}));
  EXPECT_EQ(graph.nodes()[0].outputs, outputs);
  EXPECT_EQ(graph.nodes()[0].attributes.integer("axis"), 1);
  EXPECT_EQ(std::get<std::string>(graph.inputs()[0].dims[0]), "batch");
  EXPECT_EQ(graph.outputs()[0].value, outputs[1]);
}

TEST(Graph, RefusesTakenNames) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {});
  expect_contains(error_of([&] { graph.add_input("x", DataType::kF32, {}); }), "input 'x': the name is taken");
  graph.add_output("y", x);
  graph.add_output("z", x);
  expect_contains(error_of([&] { graph.add_output("y", x); }), "output 'y': the name is taken");
  EXPECT_EQ(graph.num_values(), 1);
  EXPECT_EQ(graph.outputs().size(), 2u);
}

TEST(Graph, RefusesBadInputs) {
  Graph graph;
  expect_contains(error_of([&] { graph.add_input("x", DataType::kF32, {std::int64_t{-1}}); }), "axis 0 is -1");
  expect_contains(error_of([&] { graph.add_input("x", DataType::kF32, {""}); }), "empty name");
  expect_contains(error_of([&] { graph.add_input("x", DataType::kF32, std::vector<SymbolicDim>(9)); }), "rank 9");
  expect_contains(error_of([&] { graph.add_constant("c", nullptr); }), "constant 'c' is null");
}

TEST(Graph, ANodeUsesOnlyWhatExists) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {});
  // The node's own output would be value 1.
  const std::string error = error_of([&] { graph.add_node("Op", "n", {x, 1}); });
  expect_contains(error, "node 'n' (Op) input 1 is value 1, expected less than 1");
  error_of([&] { graph.add_node("Op", "n", {-2}); });
  expect_contains(error_of([&] { graph.add_node("Op", "n", {x}, {}, 0); }), "0 outputs");
  expect_contains(error_of([&] { graph.add_output("y", 1); }), "value 1");
  error_of([&] { graph.add_output("y", kNoValue); });
  error_of([&] { graph.constant(7); });
  error_of([&] { graph.value_name(-1); });
  EXPECT_TRUE(graph.nodes().empty());
}

}  // namespace
}  // namespace headway
