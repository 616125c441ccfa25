// Changing a graph costs what is changed, not what the graph has.
#include "ops/fusion/analysis/draft.h"

#include <gtest/gtest.h>

namespace headway::fusion {
namespace {

/// Each replacement looked at all inputs of the node: 10^10 of them for a node of 10^5.
TEST(FusionDraft, ReplacesTheInputsOfAWideNodeInAsManySteps) {
  constexpr std::size_t kInputs = 100000;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  std::vector<ValueId> many;
  for (std::size_t i = 0; i < kInputs; ++i) many.push_back(graph.add_node("Identity", "", {x}));
  graph.add_output("y", graph.add_node("Concat", "wide", many, {{"axis", Attribute(std::int64_t{0})}}));
  for (std::size_t i = 0; i < kInputs; ++i) graph.add_output("y" + std::to_string(i), many[i]);

  Draft draft(graph);
  for (const ValueId one : many) draft.replace(one, x);
  EXPECT_EQ(draft.replace_steps(), 2 * kInputs);
  const Graph built = draft.build();
  ASSERT_EQ(built.nodes().size(), 1u);
  EXPECT_EQ(built.nodes()[0].inputs, std::vector<ValueId>(kInputs, built.inputs()[0].value));
  ASSERT_EQ(built.outputs().size(), kInputs + 1);
  for (std::size_t i = 0; i < kInputs; ++i) ASSERT_EQ(built.outputs()[i + 1].value, built.inputs()[0].value);
}

/// A node that reads a value twice and by its condition too.
TEST(FusionDraft, ReplacesEveryReadOfANode) {
  Graph graph;
  const ValueId a = graph.add_input("a", DataType::kBool, {});
  const ValueId b = graph.add_input("b", DataType::kBool, {});
  const ValueId c = graph.add_input("c", DataType::kBool, {});
  const std::size_t first = graph.nodes().size();
  const ValueId both = graph.add_node("And", "both", {a, kNoValue, a, b});
  graph.guard_nodes(first, {a, true});
  graph.add_output("y", both);

  Draft draft(graph);
  EXPECT_EQ(draft.readers(a), (std::vector<int>{0, 0, 0}));
  EXPECT_FALSE(draft.has_one_consumer(a));
  EXPECT_TRUE(draft.has_one_consumer(b));
  draft.replace(a, c);
  EXPECT_TRUE(draft.readers(a).empty());
  EXPECT_EQ(draft.readers(c), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(draft.node(0).inputs, (std::vector<ValueId>{c, kNoValue, c, b}));
  ASSERT_EQ(draft.node(0).guards.size(), 1u);
  EXPECT_EQ(draft.node(0).guards[0].condition, c);
}

}  // namespace
}  // namespace headway::fusion
