// What a model may grow to when it is imported, and the order that its nodes may stand in.
#include <gtest/gtest.h>

#include "headway/onnx.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

using testing::error_of;
using testing::expect_contains;

onnx::FunctionProto* add_function(onnx::ModelProto* model, const std::string& name, const Strings& inputs,
                                  const Strings& outputs) {
  onnx::FunctionProto* function = model->add_functions();
  function->set_domain("local");
  function->set_name(name);
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  return function;
}

onnx::NodeProto* add_call(google::protobuf::RepeatedPtrField<onnx::NodeProto>* list, const std::string& name,
                          const Strings& inputs, const Strings& outputs) {
  onnx::NodeProto* node = add_node(list, name, inputs, outputs);
  node->set_domain("local");
  return node;
}

std::string unsupported(const onnx::ModelProto& model, const ImportLimits& limits = {}) {
  return error_of([&] { parse_onnx(bytes_of(model), limits); }, ErrorCode::kUnsupported);
}
std::string invalid(const onnx::ModelProto& model) {
  return error_of([&] { parse_onnx(bytes_of(model)); });
}

/// y = x, and a call of F`levels`-1, which calls the one before it twice, and so on; F0 holds `node`.
onnx::ModelProto doubling(int levels, const std::string& node) {
  onnx::ModelProto model = small_model();
  for (int i = 0; i < levels; ++i) {
    auto* function = add_function(&model, "F" + std::to_string(i), {}, {});
    for (int k = 0; k < 2 && i > 0; ++k) add_call(function->mutable_node(), "F" + std::to_string(i - 1), {}, {});
    if (i == 0 && !node.empty()) add_node(function->mutable_node(), node, {}, {"v"});
  }
  add_call(model.mutable_graph()->mutable_node(), "F" + std::to_string(levels - 1), {}, {});
  return model;
}

TEST(ImportLimits, EmptyCallsCountAsNodes) {
  // 2^59 calls of nothing, in 60 functions.
  expect_contains(unsupported(doubling(59, "")), "the model has 576460752303423489 nodes");
}

TEST(ImportLimits, CountsSaturate) {
  onnx::ModelProto model = doubling(20, "");
  for (int i = 0; i < 16; ++i) {  // each calls the one before it 64 times
    auto* function = add_function(&model, "G" + std::to_string(i), {}, {});
    const std::string inner = i == 0 ? "F19" : "G" + std::to_string(i - 1);
    for (int k = 0; k < 64; ++k) add_call(function->mutable_node(), inner, {}, {});
  }
  add_call(model.mutable_graph()->mutable_node(), "G15", {}, {});
  expect_contains(unsupported(model), "over 18446744073709551615 nodes");
}

TEST(ImportLimits, NodesAreWhatTheLimitSays) {
  const onnx::ModelProto model = doubling(8, "Mystery");  // 255 calls, 128 nodes and the 2 of the small model
  EXPECT_EQ(parse_onnx(bytes_of(model), {.nodes = 385}).graph.nodes().size(), 130u);
  expect_contains(unsupported(model, {.nodes = 384}), "has 385 nodes");
  expect_contains(unsupported(model, {.nodes = 384}), "at most 384");
}

TEST(ImportLimits, StepsCountInputsOutputsAndAttributes) {
  onnx::ModelProto model = small_model();
  add_function(&model, "Wide", Strings(1000, ""), {})->clear_input();
  for (int i = 0; i < 1000; ++i) model.mutable_functions(0)->add_input("i" + std::to_string(i));
  for (int i = 0; i < 10; ++i) add_call(model.mutable_graph()->mutable_node(), "Wide", {}, {});
  EXPECT_NO_THROW(parse_onnx(bytes_of(model)));
  expect_contains(unsupported(model, {.steps = 10000}), "steps (nodes, their inputs, outputs and attributes)");
}

TEST(ImportLimits, NamesOfWhatIsInlinedCount) {
  onnx::ModelProto model = doubling(10, "Mystery");
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) node.set_name(std::string(10000, 'n'));
  }
  expect_contains(unsupported(model), "bytes of names with its functions and branches inlined, at most 33554432");
}

TEST(ImportLimits, TheNamesOfTheFileItselfDoNotCount) {
  onnx::ModelProto model = small_model();
  for (int i = 0; i < 100; ++i) {
    add_node(model.mutable_graph(), "Mystery", {"x"}, {"v" + std::to_string(i)})->set_name(std::string(1000, 'n'));
  }
  EXPECT_EQ(parse_onnx(bytes_of(model), {.name_bytes = 100}).graph.nodes().size(), 102u);
}

TEST(ImportLimits, AttributesOfWhatIsInlinedCount) {
  onnx::ModelProto model = doubling(8, "Mystery");
  set_integers(model.mutable_functions(0)->mutable_node(0), "list", std::vector<std::int64_t>(1000, 1));
  EXPECT_NO_THROW(parse_onnx(bytes_of(model)));
  expect_contains(unsupported(model, {.attribute_bytes = 128 * 8000 - 1}), "has 1024000 bytes of attributes");
}

TEST(ImportLimits, AnAttributeThatIsReferredToCountsLikeTheLargest) {
  onnx::ModelProto model = small_model();
  auto* function = add_function(&model, "F", {}, {});
  auto* node = add_node(function->mutable_node(), "Mystery", {}, {"v"});
  add_attribute(node, "list", onnx::AttributeProto::INTS)->set_ref_attr_name("list");
  auto* call = add_call(model.mutable_graph()->mutable_node(), "F", {}, {});
  set_integers(call, "list", std::vector<std::int64_t>(1000, 1));
  expect_contains(unsupported(model, {.attribute_bytes = 7999}), "has 8000 bytes of attributes");
  EXPECT_NO_THROW(parse_onnx(bytes_of(model), {.attribute_bytes = 8000}));
}

TEST(ImportLimits, AConstantOfAFunctionIsReadOnce) {
  onnx::ModelProto model = small_model();
  const std::size_t before = parse_onnx(bytes_of(model)).weight_bytes;
  auto* function = add_function(&model, "F", {}, {"c"});
  auto* node = add_node(function->mutable_node(), "Constant", {}, {"c"});
  *add_attribute(node, "value", onnx::AttributeProto::TENSOR)->mutable_t() =
      raw_floats("", {1000}, std::vector<float>(1000, 1.0f));
  for (int i = 0; i < 100; ++i) {
    add_call(model.mutable_graph()->mutable_node(), "F", {}, {"c" + std::to_string(i)});
    add_value(model.mutable_graph()->mutable_output(), "c" + std::to_string(i), onnx::TensorProto::FLOAT, {"1000"});
  }
  const OnnxModel read = parse_onnx(bytes_of(model));
  EXPECT_EQ(read.weight_bytes, before + 4000);
  EXPECT_EQ(read.graph.constant(read.graph.outputs()[1].value), read.graph.constant(read.graph.outputs()[100].value));
}

TEST(ImportLimits, DepthIsCountedOverFunctionsAndBranches) {
  onnx::ModelProto model = small_model();
  for (int i = 0; i < 10; ++i) {
    auto* function = add_function(&model, "F" + std::to_string(i), {}, {});
    if (i > 0) add_call(function->mutable_node(), "F" + std::to_string(i - 1), {}, {});
  }
  // Counted first from the innermost: the depth of a function that has been counted before counts too.
  for (int i = 0; i < 10; ++i) add_call(model.mutable_graph()->mutable_node(), "F" + std::to_string(i), {}, {});
  EXPECT_NO_THROW(parse_onnx(bytes_of(model), {.depth = 11}));
  expect_contains(error_of([&] { parse_onnx(bytes_of(model), {.depth = 10}); }), "nested 11 deep, at most 10");
}

TEST(NodeOrder, AnyOrderGivesTheSameGraph) {
  onnx::ModelProto model = small_model();
  const OnnxModel sorted = parse_onnx(bytes_of(model));
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  const OnnxModel read = parse_onnx(bytes_of(model));
  ASSERT_EQ(read.graph.nodes().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.graph.nodes()[i].name, sorted.graph.nodes()[i].name);
    EXPECT_EQ(read.graph.nodes()[i].inputs, sorted.graph.nodes()[i].inputs);
  }
}

TEST(NodeOrder, OnlyWhatMustMoveMoves) {
  onnx::ModelProto model = empty_model();
  auto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n"});
  add_value(graph->mutable_output(), "e", onnx::TensorProto::FLOAT, {"n"});
  add_node(graph, "A", {"x"}, {"a"});
  add_node(graph, "D", {"late"}, {"d"});
  add_node(graph, "B", {"a"}, {"b"});
  add_node(graph, "C", {"b"}, {"c"});
  add_node(graph, "Late", {"x"}, {"late"});
  add_node(graph, "E", {"d"}, {"e"});
  std::string order;
  const OnnxModel read = parse_onnx(bytes_of(model));
  for (const Node& node : read.graph.nodes()) order += node.op;
  EXPECT_EQ(order, "ABCLateDE");
}

TEST(NodeOrder, InFunctionsAndBranches) {
  onnx::ModelProto model = empty_model();
  auto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n"});
  add_value(graph->mutable_input(), "yes", onnx::TensorProto::BOOL, {});
  add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {"n"});
  auto* function = add_function(&model, "F", {"a"}, {"c"});
  add_node(function->mutable_node(), "Second", {"b"}, {"c"});
  add_node(function->mutable_node(), "First", {"a"}, {"b"});
  // The If stands before what its branches take from outside.
  auto* choice = add_node(graph, "If", {"yes"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* branch = add_attribute(choice, name, onnx::AttributeProto::GRAPH)->mutable_g();
    add_node(branch, "Outer", {"inner"}, {"out"});
    add_node(branch, "Inner", {"called"}, {"inner"});
    add_value(branch->mutable_output(), "out", onnx::TensorProto::FLOAT, {"n"});
  }
  add_call(graph->mutable_node(), "F", {"x"}, {"called"});
  std::string order;
  const OnnxModel read = parse_onnx(bytes_of(model));
  for (const Node& node : read.graph.nodes()) order += node.op + ' ';
  EXPECT_EQ(order, "First Second Inner Outer Inner Outer If ");
}

TEST(NodeOrder, ACycleIsRefusedNamingANodeOfIt) {
  onnx::ModelProto model = small_model();
  auto* graph = model.mutable_graph();
  add_node(graph, "Tail", {"b"}, {"t"});
  add_node(graph, "B", {"a"}, {"b"});
  add_node(graph, "A", {"b"}, {"a"});
  const std::string text = invalid(model);
  expect_contains(text, "the graph has a cycle");
  EXPECT_TRUE(text.find("node 'a' ") != std::string::npos || text.find("node 'b' ") != std::string::npos) << text;
}

TEST(NodeOrder, AMissingValueIsStillMissing) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  model.mutable_graph()->mutable_node(1)->set_input(1, "nowhere");
  expect_contains(invalid(model), "input 1 is 'nowhere', which is no input, initializer or output of a node");
}

TEST(NodeOrder, ALongChainBackToFrontTakesLinearTime) {
  // Quadratic, this would take minutes.
  constexpr int kNodes = 50000;
  onnx::ModelProto model = empty_model();
  auto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "v0", onnx::TensorProto::FLOAT, {"n"});
  add_value(graph->mutable_output(), "v" + std::to_string(kNodes), onnx::TensorProto::FLOAT, {"n"});
  for (int i = kNodes; i > 0; --i) {
    add_node(graph, "Relu", {"v" + std::to_string(i - 1)}, {"v" + std::to_string(i)});
  }
  const OnnxModel read = parse_onnx(bytes_of(model));
  ASSERT_EQ(read.graph.nodes().size(), static_cast<std::size_t>(kNodes));
  EXPECT_EQ(read.graph.nodes()[0].name, "v1");
}

TEST(ManyNames, InputsAndOutputsTakeLinearTime) {
  constexpr int kNames = 30000;
  onnx::ModelProto model = small_model();
  auto* graph = model.mutable_graph();
  for (int i = 0; i < kNames; ++i) {
    const std::string name = "an_input_with_a_name_of_some_length_" + std::to_string(i);
    add_value(graph->mutable_input(), name, onnx::TensorProto::FLOAT, {"n"});
    add_value(graph->mutable_output(), name, onnx::TensorProto::FLOAT, {"n"});
  }
  EXPECT_EQ(parse_onnx(bytes_of(model)).graph.outputs().size(), kNames + 1u);
}

TEST(Messages, NamesWithControlCharactersStayOnOneLine) {
  for (const std::string& name : {std::string("a\nb"), std::string("a\0b", 3), std::string(1 << 20, '\x01')}) {
    onnx::ModelProto model = small_model();
    model.mutable_graph()->mutable_node(1)->set_name(name);
    model.mutable_graph()->mutable_node(1)->set_input(0, name);
    const std::string text = invalid(model);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.find('\0'), std::string::npos);
    EXPECT_LT(text.size(), 1000u);
  }
}

}  // namespace
}  // namespace headway::testing_onnx
