// A session's inputs and outputs by name: places, orders, and each way to get a name wrong.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "headway/session.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"

namespace headway::testing {
namespace {

using Inputs = std::vector<NamedInput>;
using Outputs = std::vector<NamedOutput>;

/// low, high = a + b and b + b, of one name of a dim.
Graph two_by_two() {
  Graph graph;
  const ValueId a = graph.add_input("a", DataType::kF32, {"n"});
  const ValueId b = graph.add_input("b", DataType::kF32, {"n"});
  graph.add_output("mixed", graph.add_node("Add", "first", {a, b}));
  graph.add_output("double", graph.add_node("Add", "second", {b, b}));
  return graph;
}

class SessionByName : public ::testing::Test {
 protected:
  TestRegistry registry_;
  const Session session_{two_by_two(), registry_.get()};
  const float a_[2] = {1, 2};
  const float b_[2] = {10, 20};
  const ConstTensorView first_ = view_of(a_, {2});
  const ConstTensorView second_ = view_of(b_, {2});
};

TEST_F(SessionByName, NamesPlacesAndInfos) {
  EXPECT_EQ(session_.input_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(session_.output_names(), (std::vector<std::string>{"mixed", "double"}));
  EXPECT_EQ(session_.input_index("b"), 1u);
  EXPECT_EQ(session_.output_index("double"), 1u);
  ASSERT_EQ(session_.input_infos().size(), 2u);
  EXPECT_EQ(session_.input_infos()[0].name, "a");
  EXPECT_EQ(session_.input_infos()[0].type, DataType::kF32);
  EXPECT_EQ(session_.input_infos()[0].dims, (std::vector<SymbolicDim>{"n"}));
}

TEST_F(SessionByName, AnyOrderOfInputsAndOutputs) {
  float mixed[2] = {}, doubled[2] = {};
  session_.run(Inputs{{"b", second_}, {"a", first_}},
               Outputs{{"double", view_of(doubled, {2})}, {"mixed", view_of(mixed, {2})}}, Threads::serial());
  EXPECT_EQ(mixed[1], 22.0f);
  EXPECT_EQ(doubled[1], 40.0f);
  const std::vector<Tensor> made = session_.run(Inputs{{"b", second_}, {"a", first_}}, Threads::serial());
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[session_.output_index("mixed")].data<float>()[0], 11.0f);
  EXPECT_EQ(made[session_.output_index("double")].data<float>()[0], 20.0f);
}

TEST_F(SessionByName, WrongNamesAreNamedInTheError) {
  const auto run = [&](const Inputs& inputs) { return error_of([&] { session_.run(inputs, Threads::serial()); }); };
  EXPECT_EQ(run({{"c", first_}, {"b", second_}}), "the graph has no input 'c', expected one of 'a', 'b'");
  EXPECT_EQ(run({{"b", second_}}), "input 'a' is missing: 1 given, expected 2");
  EXPECT_EQ(run({{"a", first_}, {"b", second_}, {"a", first_}}), "input 'a' is given twice, expected once");
  EXPECT_EQ(error_of([&] { session_.input_index("mixed"); }),
            "the graph has no input 'mixed', expected one of 'a', 'b'");
  EXPECT_EQ(error_of([&] { session_.output_index("a"); }),
            "the graph has no output 'a', expected one of 'mixed', 'double'");
}

TEST_F(SessionByName, WrongOutputsAreRefusedBeforeAnythingIsWritten) {
  float mixed[2] = {7, 7};
  const Inputs inputs{{"a", first_}, {"b", second_}};
  const auto run = [&](const Outputs& outputs) {
    return error_of([&] { session_.run(inputs, outputs, Threads::serial()); });
  };
  EXPECT_EQ(run({{"mixed", view_of(mixed, {2})}}), "output 'double' is missing: 1 given, expected 2");
  EXPECT_EQ(run({{"mixed", view_of(mixed, {2})}, {"mixed", view_of(mixed, {2})}}),
            "output 'mixed' is given twice, expected once");
  expect_contains(run({{"mixed", view_of(mixed, {2})}, {"sum", view_of(mixed, {2})}}), "the graph has no output 'sum'");
  EXPECT_EQ(mixed[0], 7.0f);
  EXPECT_EQ(registry_.runs("Add"), 0);
}

TEST_F(SessionByName, AssignsByMove) {
  Session session(triple_graph(), registry_.get());
  session = Session(two_by_two(), registry_.get());
  EXPECT_EQ(session.input_names().size(), 2u);
  const std::vector<Tensor> made = session.run(Inputs{{"a", first_}, {"b", second_}}, Threads::serial());
  EXPECT_EQ(made[0].data<float>()[0], 11.0f);
}

}  // namespace
}  // namespace headway::testing
