// What a session counts, what it refuses before it allocates, and what it gives back.
#include <gtest/gtest.h>

#include "headway/session.h"
#include "runtime/base/machine_memory.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kTera = std::int64_t{1} << 40;
constexpr std::size_t kMega = std::size_t{1} << 20;

TensorInfo floats(std::int64_t count) { return {DataType::kF32, {count}, true}; }

SessionOptions limit(std::size_t bytes) { return {.memory_limit_bytes = bytes}; }

std::string refusal(const Session& session, const TensorInfo& input) {
  return error_of([&] { session.output_infos(std::vector{input}); }, ErrorCode::kOutOfMemory);
}

/// y = Double(Double(... x)), `length` nodes "d0", "d1", …
Graph chain(ValueId from, int length, Graph graph) {
  for (int i = 0; i < length; ++i) from = graph.add_node("Double", "d" + std::to_string(i), {from});
  graph.add_output("y", from);
  return graph;
}

Graph chain_of_input(int length) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  return chain(x, length, std::move(graph));
}

Graph chain_of_constant(int length, std::size_t floats) {
  Graph graph;
  const ValueId x = graph.add_constant("c", tensor_of(std::vector<float>(floats, 1.0f)));
  return chain(x, length, std::move(graph));
}

TEST(MemoryLimit, ATensorBeyondItIsRefusedNamingTheNodeAndBothNumbers) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), limit(kMega));
  const std::string text = refusal(session, floats(kTera));
  expect_contains(text, "needs 4398046511104 bytes for the largest tensor, of node 'double' (Double)");
  expect_contains(text, "the memory limit is 1048576 bytes");
  EXPECT_EQ(registry.plans("Double"), 0);
}

TEST(MemoryLimit, WithoutOneTheMachineIsTheLimit) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const std::string seven_eighths = std::to_string(machine_memory_bytes() / 8 * 7);
  expect_contains(refusal(session, floats(kTera << 10)), "the memory limit is " + seven_eighths + " bytes");
}

TEST(MemoryLimit, TheSumIsRefusedWhereEachTensorWouldFit) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), limit(kMega));
  // 640 kB for the intermediate, 640 kB for the output.
  const std::string text = refusal(session, floats(160'000));
  expect_contains(text, "640000 bytes for intermediates, 640000 bytes for outputs");
  EXPECT_EQ(session.output_infos(std::vector{floats(80'000)}).size(), 1u);
}

TEST(MemoryLimit, ConstantsCount) {
  TestRegistry registry;
  const std::string text =
      error_of([&] { const Session session(chain_of_constant(1, kMega / 2), registry.get(), limit(kMega)); },
               ErrorCode::kOutOfMemory);
  expect_contains(text, "needs 2097152 bytes for the constants of the graph");
}

TEST(MemoryLimit, OutputsThatARunAllocatesCount) {
  TestRegistry registry;
  const Session session(chain_of_input(1), registry.get(), limit(kMega));
  const std::vector<float> x(200'000, 1.0f);
  const std::vector<ConstTensorView> inputs{input_of(x)};
  EXPECT_EQ(session.run(inputs, Threads::serial())[0].count(), 200'000);
  const std::vector<float> large(400'000, 1.0f);
  expect_contains(
      error_of([&] { session.run(std::vector{input_of(large)}, Threads::serial()); }, ErrorCode::kOutOfMemory),
      "needs 1600000 bytes for ");
}

TEST(MemoryLimit, PlansOfOtherShapesMakeRoom) {
  TestRegistry registry;
  const Session session(chain_of_input(2), registry.get(), limit(kMega));
  // The intermediates of any three of these shapes are more than the limit.
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t count : {100'000, 100'001, 100'002, 100'003, 100'004}) {
      const std::vector<float> x(count, 1.0f);
      EXPECT_EQ(run_one(session, {input_of(x)}), std::vector<float>(count, 4.0f));
    }
  }
}

TEST(MemoryLimit, ARefusedShapeLeavesTheSessionUsable) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), limit(kMega));
  for (int i = 0; i < 20; ++i) refusal(session, floats(kTera));
  EXPECT_EQ(run_one(session, {input_of({1, 2})}), (std::vector<float>{3, 6}));
}

TEST(MemoryLimit, WorkspacesCount) {
  TestRegistry registry;
  FunctionOperator::Functions functions = double_functions();
  functions.workspace_bytes = [](int workers) { return static_cast<std::size_t>(workers) * kMega; };
  registry.add("Roomy", functions);
  Graph graph;
  graph.add_output("y", graph.add_node("Roomy", "roomy", {graph.add_input("x", DataType::kF32, {"n"})}));
  const Session session(std::move(graph), registry.get(), limit(3 * kMega));
  const std::vector<float> x{1, 2};
  EXPECT_EQ(run_one(session, {input_of(x)}), (std::vector<float>{2, 4}));
  const std::string text =
      error_of([&] { run_one(session, {input_of(x)}, Threads::openmp(4)); }, ErrorCode::kOutOfMemory);
  expect_contains(text, "for the workspace of a run");
  EXPECT_EQ(run_one(session, {input_of(x)}), (std::vector<float>{2, 4}));
}

TEST(Folding, WhatNoOutputNeedsIsNotFolded) {
  TestRegistry registry;
  Graph graph;
  const ValueId c = graph.add_constant("c", tensor_of({1, 2}));
  for (int i = 0; i < 10; ++i) graph.add_node("Double", "unused", {c});
  graph.add_output("y", graph.add_node("Double", "used", {graph.add_input("x", DataType::kF32, {"n"})}));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(registry.runs("Double"), 0);
  EXPECT_EQ(run_one(session, {input_of({3})}), std::vector<float>{6});
  expect_contains(session.explain(std::vector{floats(1)}, 1), "left out, nothing needs it");
}

TEST(Folding, WhatOnlyFoldedNodesReadIsFreed) {
  TestRegistry registry;
  // 64 results of 1 MB one after the other: two at a time and the constant are 3 MB.
  const Session session(chain_of_constant(64, kMega / 4), registry.get(), limit(5 * kMega));
  EXPECT_EQ(registry.runs("Double"), 64);
  const Tensor y = std::move(session.run(std::span<const ConstTensorView>(), Threads::serial())[0]);
  EXPECT_EQ(y.data<float>()[kMega / 4 - 1], 0x1p64f);
}

TEST(Folding, AFoldedValueThatARunReadsToo) {
  TestRegistry registry;
  Graph graph;
  const ValueId twice = graph.add_node("Double", "twice", {graph.add_constant("c", tensor_of({1, 2}))});
  const ValueId fourfold = graph.add_node("Double", "fourfold", {twice});
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Add", "y", {graph.add_node("Add", "add", {x, fourfold}), twice}));
  const Session session(std::move(graph), registry.get());
  EXPECT_EQ(run_one(session, {input_of({10, 20})}), (std::vector<float>{16, 32}));
}

TEST(Folding, ResultsTogetherAreBounded) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  registry.add("Fill", {[](const NodeContext&) { return std::vector<TensorInfo>{floats(kMega)}; },
                        [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
                          std::fill_n(out[0].as<float>(), out[0].count(), in[0].as<float>()[0]);
                        }});
  std::vector<ValueId> inputs;
  for (int i = 0; i < 100; ++i) {
    const ValueId c = graph.add_constant("c", tensor_of({static_cast<float>(i)}));
    graph.add_output("y" + std::to_string(i), graph.add_node("Fill", "fill", {c}));
  }
  graph.add_output("z", graph.add_node("Double", "z", {x}));
  // 100 results of 4 MB: some are folded, the rest is left to the run.
  const Session session(std::move(graph), registry.get());
  EXPECT_GT(registry.runs("Fill"), 0);
  EXPECT_LE(registry.runs("Fill"), 12);
}

TEST(EmptyTensors, ANodeWithoutElementsToWriteIsPlannedAndNotRun) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n", "m"});
  graph.add_output("y", graph.add_node("Double", "double", {x}));
  const Session session(std::move(graph), registry.get());
  const ConstTensorView empty(nullptr, DataType::kF32, {kTera, 0});
  EXPECT_EQ(session.run(std::vector{empty}, Threads::serial())[0].dims(), (Dims{kTera, 0}));
  EXPECT_EQ(registry.plans("Double"), 1);
  EXPECT_EQ(registry.runs("Double"), 0);
}

TEST(Messages, ANameWithControlCharactersStaysOnOneLine) {
  TestRegistry registry;
  Graph graph;
  const std::string name("a\nb\0c\x1B[31m", 10);
  const ValueId x = graph.add_input("x\n", DataType::kF32, {"n"});
  graph.add_output("y\r\n", graph.add_node("Picky", name, {x}));
  const Session session(std::move(graph), registry.get());
  const std::string in_run = error_of([&] { run_one(session, {input_of({-1})}); });
  const std::string in_check = error_of([&] { session.run({}, std::vector<TensorView>{}, Threads::serial()); });
  const float number = 0;
  const std::string in_type = error_of([&] {
    session.run(std::vector<ConstTensorView>{{reinterpret_cast<const std::byte*>(&number), DataType::kI32, {1}}},
                Threads::serial());
  });
  for (const std::string& text : {in_run, in_check, in_type}) {
    EXPECT_EQ(std::count_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }), 0)
        << text;
  }
  expect_contains(in_run, "node 'a\\x0Ab\\x00c");
}

}  // namespace
}  // namespace headway::testing
