// What a session computes: order, constants, several outputs, strided tensors, empty tensors, explain.
#include "headway/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/check.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Session, RunsInOrder) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  EXPECT_EQ(run_one(session, {input_of({1, 2, 3})}), (std::vector<float>{3, 6, 9}));
  EXPECT_EQ(run_one(session, {input_of({5})}), std::vector<float>{15});
  EXPECT_EQ(run_one(session, {input_of({1, 1, 1})}), (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(registry.plans("Add"), 2) << "two shapes";
  EXPECT_EQ(registry.runs("Add"), 3);
}

TEST(Session, OutputInfos) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const auto infos = session.output_infos(std::vector<TensorInfo>{{DataType::kF32, {7}}});
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].dims, Dims{7});
  EXPECT_EQ(infos[0].type, DataType::kF32);
  EXPECT_EQ(registry.runs("Add"), 0);
}

TEST(Session, Moves) {
  TestRegistry registry;
  Session first(triple_graph(), registry.get());
  const Session second(std::move(first));
  EXPECT_EQ(run_one(second, {input_of({2})}), std::vector<float>{6});
  EXPECT_EQ(second.graph().nodes().size(), 2u);
}

TEST(Session, OperatorsReachTheHost) {
  TestRegistry registry;
  registry.add("AddToHost", {same_as_first, [](const RunContext& context, std::span<const ConstTensorView> in,
                                               std::span<const TensorView> out) {
                               if (context.host != nullptr) *static_cast<float*>(context.host) += in[0].as<float>()[0];
                               copy_elements(in[0], out[0]);
                             }});
  Graph graph;
  graph.add_output("y", graph.add_node("AddToHost", "add", {graph.add_input("x", DataType::kF32, {"n"})}));
  const Session session(std::move(graph), registry.get());
  const std::vector<float> x = {2};
  const std::vector<ConstTensorView> in = {input_of(x)};
  const std::vector<NamedInput> named = {{"x", in[0]}};
  float first = 0, second = 0;
  session.run(in, Threads::serial(), nullptr, &first);
  session.run(named, Threads::serial(), nullptr, &second);
  session.run(named, Threads::serial(), nullptr, &second);
  session.run(in, Threads::serial());
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 4);
}

TEST(Session, EmptyTensors) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const ConstTensorView none(nullptr, DataType::kF32, {0});
  EXPECT_EQ(session.run(std::vector<ConstTensorView>{none}, Threads::serial())[0].count(), 0);
}

TEST(Session, AbsentInputsAndOutputs) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const auto around = graph.add_node("Around", "around", {x}, {{"no_high", std::int64_t{1}}}, 2);
  graph.add_output("left_out", graph.add_node("Optional", "a", {x, kNoValue}));
  graph.add_output("not_made", graph.add_node("Optional", "b", {x, around[1]}));
  graph.add_output("given", graph.add_node("Optional", "c", {x, around[0]}));
  const Session session(std::move(graph), registry.get());
  const std::vector<float> values = {1};
  const auto outputs = session.run(std::vector<ConstTensorView>{input_of(values)}, Threads::serial());
  EXPECT_EQ(outputs[0].data<float>()[0], 101.0f);
  EXPECT_EQ(outputs[1].data<float>()[0], 101.0f);
  EXPECT_EQ(outputs[2].data<float>()[0], 1.0f);
}

TEST(Session, AnOutputThatIsNotMadeIsRefused) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Around", "around", {x}, {{"no_high", std::int64_t{1}}}, 2)[1]);
  const Session session(std::move(graph), registry.get());
  expect_contains(error_of([&] { run_one(session, {input_of({1})}); }), "output 'y' is value 'around:1'");
}

TEST(Session, OutputsThatNoNodeWrites) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId c = graph.add_constant("c", tensor_of({7, 8}));
  const ValueId y = graph.add_node("Double", "double", {x});
  graph.add_output("input", x);
  graph.add_output("constant", c);
  graph.add_output("folded", graph.add_node("Double", "folded", {c}));
  graph.add_output("y", y);
  graph.add_output("y_again", y);
  graph.add_output("read_back", graph.add_node("Double", "more", {y}));
  const Session session(std::move(graph), registry.get());
  for (int round = 0; round < 2; ++round) {
    const std::vector<float> values = {1.0f + static_cast<float>(round), 2, 3};
    const auto outputs = session.run(std::vector<ConstTensorView>{input_of(values)}, Threads::serial());
    EXPECT_EQ(outputs[0].data<float>()[0], values[0]);
    EXPECT_EQ(outputs[1].data<float>()[1], 8.0f);
    EXPECT_EQ(outputs[2].data<float>()[1], 16.0f);
    EXPECT_EQ(outputs[3].data<float>()[0], 2 * values[0]);
    EXPECT_EQ(outputs[4].data<float>()[0], 2 * values[0]);
    EXPECT_EQ(outputs[4].data<float>()[2], 6.0f);
    EXPECT_EQ(outputs[5].data<float>()[2], 12.0f);
  }
}

TEST(Session, ConstantsAreFoldedOnce) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId c = graph.add_constant("c", tensor_of({1, 2}));
  const ValueId folded = graph.add_node("Add", "folded", {graph.add_node("Double", "inner", {c}), c});
  graph.add_output("y", graph.add_node("Add", "add", {x, folded}));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(registry.runs("Double"), 1);
  EXPECT_EQ(run_one(session, {input_of({10, 20})}), (std::vector<float>{13, 26}));
  EXPECT_EQ(run_one(session, {input_of({0, 0})}), (std::vector<float>{3, 6}));
  EXPECT_EQ(registry.runs("Double"), 1);
  EXPECT_EQ(registry.runs("Add"), 3);
}

TEST(Session, OperatorsSeeKnownValues) {
  TestRegistry registry;
  // y has as many elements as the constant says.
  registry.add("Repeat", {[](const NodeContext& node) {
                            require(node.constants[1].present && !node.constants[0].present, "count is not known");
                            const auto n = static_cast<std::int64_t>(node.constants[1].as<float>()[0]);
                            return std::vector<TensorInfo>{{DataType::kF32, Dims{n}}};
                          },
                          [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
                            std::fill_n(out[0].as<float>(), out[0].count(), in[0].as<float>()[0]);
                          }});
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {std::int64_t{1}});
  const ValueId n = graph.add_node("Double", "n", {graph.add_constant("c", tensor_of({2}))});
  graph.add_output("y", graph.add_node("Repeat", "repeat", {x, n}));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(run_one(session, {input_of({3})}), (std::vector<float>{3, 3, 3, 3}));
}

TEST(Session, StridedInputsAndOutputs) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"rows", "columns"});
  graph.add_output("y", graph.add_node("Double", "double", {x}));
  const Session session(std::move(graph), registry.get());
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const ConstTensorView input = view_of(values.data(), {2, 3}).permuted({1, 0});  // [3, 2]
  std::vector<float> memory(12, kNan);
  const TensorView output(reinterpret_cast<std::byte*>(memory.data()), DataType::kF32, {3, 2}, {4, 2});
  for (int round = 0; round < 2; ++round) {
    std::fill(memory.begin(), memory.end(), kNan);
    session.run(std::vector<ConstTensorView>{input}, std::vector<TensorView>{output}, Threads::serial());
    const std::vector<float> expected = {0, 6, 2, 8, 4, 10};
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_EQ(memory[i], expected[i / 2]);
      } else {
        EXPECT_TRUE(std::isnan(memory[i])) << "between the elements, at " << i;
      }
    }
  }
}

TEST(Session, AStridedRunLeavesNoTrace) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const std::vector<float> values = {1, 9, 2, 9};
  const ConstTensorView strided(reinterpret_cast<const std::byte*>(values.data()), DataType::kF32, {2}, {2});
  EXPECT_EQ(run_one(session, {strided}), (std::vector<float>{3, 6}));
  EXPECT_EQ(run_one(session, {input_of({4, 5})}), (std::vector<float>{12, 15}));
}

TEST(Session, MemoryIsReused) {
  TestRegistry registry;
  Graph graph;
  ValueId value = graph.add_input("x", DataType::kF32, {"n"});
  for (int i = 0; i < 8; ++i) value = graph.add_node("Double", "d" + std::to_string(i), {value});
  graph.add_output("y", value);
  const Session session(std::move(graph), registry.get());
  // Seven intermediates of 4,000 bytes, each read by the next node only: two places of 4,032 do.
  const std::string text = session.explain(std::vector<TensorInfo>{{DataType::kF32, {1000}}}, 1);
  expect_contains(text, "arena 8064 bytes for intermediates of 28224 bytes, liveness saved 20160 bytes");
  const std::vector<float> input(1000, 1.5f);
  EXPECT_EQ(run_one(session, {input_of(input)}), std::vector<float>(1000, 384.0f));
}

TEST(Session, AValueReadLateKeepsItsMemory) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId early = graph.add_node("Double", "early", {x});
  ValueId value = early;
  for (int i = 0; i < 6; ++i) value = graph.add_node("Double", "d", {value});
  // Both outputs of "around" are written though one is never read.
  const auto around = graph.add_node("Around", "around", {value}, {}, 2);
  graph.add_output("y", graph.add_node("Add", "late", {around[0], early}));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(run_one(session, {input_of({1, 2})}), (std::vector<float>{129, 259}));
}

TEST(Session, Explain) {
  TestRegistry registry;
  Graph graph = triple_graph();
  graph.add_output("c", graph.add_node("Double", "known", {graph.add_constant("c", tensor_of({1}))}));
  const Session session(std::move(graph), registry.get());
  const std::string text = session.explain(std::vector<TensorInfo>{{DataType::kF32, {5}}}, 3);
  expect_contains(text, "Double 'double' -> f32 [5]: workspace 0 bytes\n    doubles\n    one task an element\n");
  expect_contains(text, "Add 'add' -> f32 [5]: workspace 768 bytes\n");
  expect_contains(text, "Double 'known' -> f32 [1]: folded");
  expect_contains(text, "workspace 768 bytes with 3 workers");
  expect_contains(error_of([&] {
                    session.explain(std::vector<TensorInfo>{{DataType::kF32, {5}}}, 0);
                  }),
                  "workers is 0");
}

}  // namespace
}  // namespace headway::testing
