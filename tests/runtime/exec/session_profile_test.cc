// A session's zones: one a node, around what the operators report themselves; none without a profiler.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headway/session.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

constexpr Zone kInner{"inner", "test"};

/// A node "a", an unnamed one, and a zone that each reports itself.
Session make_session(TestRegistry* registry) {
  registry->add("Reports", {same_as_first, [](const RunContext& context, std::span<const ConstTensorView> in,
                                              std::span<const TensorView> out) {
                              ProfileScope scope(context.profiler, 0, kInner);
                              scope.add({0, 5, 0, 0});
                              copy_elements(in[0], out[0]);
                            }});
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Reports", "", {graph.add_node("Reports", "a", {x})}));
  return Session(std::move(graph), registry->get());
}

TEST(SessionProfile, AZoneANode) {
  TestRegistry registry;
  Profiler profiler({1, 100});
  {
    const Session session = make_session(&registry);
    const std::vector<float> small(3, 1.0f);
    const std::vector<float> large(5, 1.0f);
    for (const auto* input : {&small, &large, &small}) {
      session.run(std::vector<ConstTensorView>{input_of(*input)}, Threads::serial(), &profiler);
    }
    session.run(std::vector<ConstTensorView>{input_of(small)}, Threads::serial());  // off
  }
  // The session is gone: what was recorded must stand on its own.
  const auto rows = profiler.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[0].category, "node");
  EXPECT_EQ(rows[0].count, 3) << "a node's zone is one whatever the shape";
  EXPECT_EQ(rows[1].name, "inner");
  EXPECT_EQ(rows[1].count, 6);
  EXPECT_EQ(rows[1].work.flops_executed, 30);
  EXPECT_EQ(rows[2].name, "Reports") << "a node without a name goes by its operator";
  EXPECT_GE(rows[0].seconds + rows[2].seconds, rows[1].seconds);
  EXPECT_EQ(nlohmann::json::parse(profiler.chrome_trace())["traceEvents"].size(), 1u + 12u);
}

}  // namespace
}  // namespace headway::testing
