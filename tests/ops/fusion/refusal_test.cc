// What is wrong with a graph is said before a pattern looks at it, in the words in which the graph as it is is refused;
// and what only a run contradicts is left to that graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/fusion.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

using Ints = std::vector<std::int64_t>;

class FusionRefusals : public ::testing::Test {
 protected:
  FusionRefusals() { register_ops(&registry_); }

  /// Planned for these dims of the inputs.
  std::string refusal(const Graph& graph, const std::vector<Dims>& dims) {
    std::vector<TensorInfo> infos;
    for (std::size_t i = 0; i < dims.size(); ++i) infos.push_back({graph.inputs()[i].type, dims[i], true});
    const std::string unfused = error_of([&] { Session(graph, registry_).output_infos(infos); });
    const std::string fused = error_of([&] { Session(fuse(graph, registry_), registry_).output_infos(infos); });
    EXPECT_EQ(fused, unfused);
    return fused;
  }

  /// The output where both graphs run; every fifth bool is false.
  std::vector<float> result(const Graph& graph, const std::vector<Dims>& dims, bool fused) {
    const Session session(fused ? fuse(graph, registry_) : graph, registry_);
    std::vector<Tensor> tensors;
    std::vector<ConstTensorView> inputs;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      tensors.emplace_back(graph.inputs()[i].type, dims[i]);
      const std::int64_t count = tensors.back().count();
      for (std::int64_t k = 0; k < count && tensors.back().type() == DataType::kF32; ++k) {
        tensors.back().data<float>()[k] = static_cast<float>(k % 5) * 0.25f - 0.5f;
      }
      for (std::int64_t k = 0; k < count && tensors.back().type() == DataType::kBool; ++k) {
        tensors.back().data<bool>()[k] = k % 5 != 4;
      }
    }
    for (const Tensor& tensor : tensors) inputs.push_back(tensor.view());
    const std::vector<Tensor> outputs = session.run(inputs, Threads::serial());
    return {outputs[0].data<float>(), outputs[0].data<float>() + outputs[0].count()};
  }

  Registry registry_;
};

/// x [B, S, 4] through one node of these inputs, then a Softmax and a product, so that patterns look around it.
Graph with_node(const std::string& op, int copies_of_x, const Attributes& attributes) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"B", "S", std::int64_t{4}});
  const ValueId wrong =
      graph.add_node(op, "wrong", std::vector<ValueId>(static_cast<std::size_t>(copies_of_x), x), attributes);
  const ValueId scores = graph.add_node("MatMul", "scores", {wrong, x});
  graph.add_output("y", graph.add_node("MatMul", "context", {graph.add_node("Softmax", "softmax", {scores}), x}));
  return graph;
}

TEST_F(FusionRefusals, NodesOfTooFewInputsAreNamed) {
  for (const char* const op : {"Add",
                               "Mul",
                               "Div",
                               "Sub",
                               "Pow",
                               "Where",
                               "MatMul",
                               "Gemm",
                               "Softmax",
                               "Transpose",
                               "Reshape",
                               "Tanh",
                               "ReduceMean",
                               "Cast",
                               "Gather",
                               "Slice",
                               "Concat",
                               "Split",
                               "Expand",
                               "Identity",
                               "Dropout",
                               "onnx.Attention",
                               "com.microsoft.Attention"}) {
    const std::string text = refusal(with_node(op, 0, {{"axis", std::int64_t{0}}}), {{2, 3, 4}});
    expect_contains(text, std::string("node 'wrong' (") + op + ")");
    expect_contains(text, "has 0 inputs");
  }
  for (const char* const op : {"Add", "Mul", "Div", "Sub", "Pow", "MatMul", "Where", "Equal"}) {
    expect_contains(refusal(with_node(op, 1, {}), {{2, 3, 4}}), "has 1 inputs");
  }
}

TEST_F(FusionRefusals, AxesThatDoNotExistAreNamed) {
  expect_contains(refusal(with_node("Transpose", 1, {{"perm", Ints{0, 1, std::int64_t{1} << 40}}}), {{2, 3, 4}}),
                  "perm holds 1099511627776, expected 0 to 2");
  expect_contains(refusal(with_node("Transpose", 1, {{"perm", Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}), {{2, 3, 4}}),
                  "perm has 10 axes, expected rank 3");
  expect_contains(refusal(with_node("Softmax", 1, {{"axis", std::numeric_limits<std::int64_t>::min()}}), {{2, 3, 4}}),
                  "axis is -9223372036854775808");
  expect_contains(refusal(with_node("Softmax", 1, {{"axis", std::string("last")}}), {{2, 3, 4}}),
                  "attribute 'axis' is a string, expected an integer");
}

/// A Squeeze without axes leaves any rank: the rule of the Softmax behind it read no axis then, and fusion did, which
/// named no node.
TEST_F(FusionRefusals, AttributesBehindAnOpenRankAreNamed) {
  for (const char* const op : {"Softmax", "Transpose"}) {
    Graph graph;
    const ValueId x = graph.add_input("x", DataType::kF32, {"B", "S", "E"});
    const ValueId open = graph.add_node("Squeeze", "open", {x});
    const Attributes wrong{{"axis", std::string("last")}, {"perm", std::string("last")}};
    graph.add_output("y", graph.add_node(op, "wrong", {open}, wrong));
    const std::string text = refusal(graph, {{2, 3, 4}});
    expect_contains(text, std::string("node 'wrong' (") + op + ")");
    expect_contains(text, "is a string, expected");
  }
}

Graph onnx_attention(std::vector<SymbolicDim> q, std::vector<SymbolicDim> kv, std::vector<SymbolicDim> mask,
                     std::int64_t opset = 23) {
  Graph graph;
  const ValueId query = graph.add_input("q", DataType::kF32, std::move(q));
  const ValueId key = graph.add_input("k", DataType::kF32, std::move(kv));
  const ValueId bias = graph.add_input("mask", DataType::kF32, std::move(mask));
  graph.add_output("y", graph.add_node("onnx.Attention", "att", {query, key, key, bias}, {{"opset", opset}}));
  return graph;
}

TEST_F(FusionRefusals, HeadsAndMasksOfOnnxAttentionDoNotStandForOthers) {
  const Graph fixed = onnx_attention({1, 1, 3, 8}, {1, 2, 5, 8}, {3, 5});
  expect_contains(refusal(fixed, {{1, 1, 3, 8}, {1, 2, 5, 8}, {3, 5}}),
                  "node 'att' (onnx.Attention): onnx.Attention Q has 1 heads, expected a multiple of the 2 of K and V");
  // The same where only the run knows.
  const Graph open =
      onnx_attention({"b", "h", "s", std::int64_t{8}}, {"b2", "h2", "s2", std::int64_t{8}}, {"m1", "m2", "m3", "m4"});
  expect_contains(refusal(open, {{1, 1, 3, 8}, {1, 2, 5, 8}, {1, 1, 3, 5}}), "Q has 1 heads");
  expect_contains(refusal(open, {{1, 2, 3, 8}, {4, 2, 5, 8}, {1, 1, 3, 5}}), "K has dims [4, 2, 5, 8], expected [1");
  expect_contains(refusal(open, {{1, 2, 3, 8}, {1, 2, 5, 8}, {4, 1, 3, 5}}), "attn_mask has dims [4, 1, 3, 5]");
  expect_contains(refusal(open, {{1, 2, 3, 8}, {1, 2, 5, 8}, {1, 1, 2, 5}}), "attn_mask has dims [1, 1, 2, 5]");
  EXPECT_EQ(result(open, {{1, 2, 3, 8}, {1, 2, 5, 8}, {1, 1, 3, 5}}, true).size(), 48u);
}

TEST_F(FusionRefusals, MasksOfNarrowAttentionAreChecked) {
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF64}) {
    for (const Dims& mask : {Dims{2, 5}, Dims{0, 5}, Dims{2, 7}}) {
      Graph graph;
      const ValueId q = graph.add_input("q", type, {1, 2, 3, 8});
      const ValueId k = graph.add_input("k", type, {1, 2, 5, 8});
      const ValueId m = graph.add_input("mask", type, {"r", "c"});
      graph.add_output("y", graph.add_node("onnx.Attention", "att", {q, k, k, m}));
      expect_contains(refusal(graph, {{1, 2, 3, 8}, {1, 2, 5, 8}, mask}), "node 'att' (onnx.Attention)");
    }
  }
}

TEST_F(FusionRefusals, AMaskOfOneColumnIsForAllKeys) {
  for (const std::int64_t opset : {23, 24}) {
    const Graph graph = onnx_attention({1, 1, 2, 4}, {1, 1, 3, 4}, {2, 1}, opset);
    const std::vector<Dims> dims{{1, 1, 2, 4}, {1, 1, 3, 4}, {2, 1}};
    const std::vector<float> fused = result(graph, dims, true);
    EXPECT_EQ(fused, result(graph, dims, false));
    // One number added to all scores of a query changes nothing: not what only the first key would give.
    Graph bare;
    const ValueId q = bare.add_input("q", DataType::kF32, {1, 1, 2, 4});
    const ValueId k = bare.add_input("k", DataType::kF32, {1, 1, 3, 4});
    bare.add_output("y", bare.add_node("onnx.Attention", "att", {q, k, k}));
    const std::vector<float> expected = result(bare, {{1, 1, 2, 4}, {1, 1, 3, 4}}, false);
    ASSERT_EQ(fused.size(), expected.size());
    for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], expected[i], 1e-6f);
  }
}

/// Attention of operators over named sizes; the mask is added, or where it is bool fills in −inf.
Graph masked_attention(DataType mask_type) {
  Graph graph;
  const ValueId q = graph.add_input("q", DataType::kF32, {"b", "h", "s", std::int64_t{8}});
  const ValueId k = graph.add_input("k", DataType::kF32, {"b2", "h2", "s2", std::int64_t{8}});
  const ValueId mask = graph.add_input("mask", mask_type, {"m1", "m2", "m3", "m4"});
  const ValueId turned = graph.add_node("Transpose", "turned", {k}, {{"perm", Ints{0, 1, 3, 2}}});
  ValueId scores = graph.add_node("MatMul", "scores", {q, turned});
  if (mask_type == DataType::kBool) {
    auto fill = std::make_shared<Tensor>(DataType::kF32, Dims{});
    *fill->data<float>() = -std::numeric_limits<float>::infinity();
    scores = graph.add_node("Where", "masked", {mask, scores, graph.add_constant("fill", fill)});
  } else {
    scores = graph.add_node("Add", "masked", {scores, mask});
  }
  graph.add_output("y", graph.add_node("MatMul", "context", {graph.add_node("Softmax", "softmax", {scores}), k}));
  return graph;
}

/// In the Attention operator a short mask hides the keys that it lacks; a sum refuses it.
TEST_F(FusionRefusals, MasksOfFewerKeysThanTheScores) {
  for (const DataType type : {DataType::kF32, DataType::kBool}) {
    const Graph graph = masked_attention(type);
    FusionReport report;
    fuse(graph, registry_, &report);
    ASSERT_EQ(report.count("attention"), 1) << report.text();
    for (const std::int64_t keys : {2, 3, 4, 6}) {
      expect_contains(refusal(graph, {{1, 2, 3, 8}, {1, 2, 5, 8}, {1, 1, 3, keys}}), "node 'masked'");
    }
    for (const std::int64_t keys : {1, 5}) {
      const std::vector<Dims> dims{{1, 2, 3, 8}, {1, 2, 5, 8}, {1, 1, 3, keys}};
      const std::vector<float> expected = result(graph, dims, false);
      const std::vector<float> got = result(graph, dims, true);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f);
    }
  }
}

/// A whole layer [B, S, 8] of two heads with an added mask.
Graph masked_layer(SymbolicDim batch, std::vector<SymbolicDim> mask_dims) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {std::move(batch), "s", std::int64_t{8}});
  const ValueId mask = graph.add_input("mask", DataType::kF32, std::move(mask_dims));
  const auto constant = [&](const std::string& name, const Ints& numbers) {
    auto tensor = std::make_shared<Tensor>(DataType::kI64, Dims{static_cast<std::int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), tensor->data<std::int64_t>());
    return graph.add_constant(name, std::move(tensor));
  };
  const auto projected = [&](ValueId from, const std::string& name) {
    auto weight = std::make_shared<Tensor>(DataType::kF32, Dims{8, 8});
    for (std::int64_t i = 0; i < 64; ++i) weight->data<float>()[i] = static_cast<float>(i * 7 % 11) * 0.1f - 0.5f;
    return graph.add_node("MatMul", name, {from, graph.add_constant(name + "/w", std::move(weight))});
  };
  const auto heads = [&](const std::string& name, const Ints& perm) {
    const ValueId apart =
        graph.add_node("Reshape", name + "/apart", {projected(x, name), constant(name + "/dims", {0, 0, 2, 4})});
    return graph.add_node("Transpose", name + "/heads", {apart}, {{"perm", perm}});
  };
  const ValueId scores = graph.add_node("MatMul", "scores", {heads("q", {0, 2, 1, 3}), heads("k", {0, 2, 3, 1})});
  const ValueId probs = graph.add_node("Softmax", "softmax", {graph.add_node("Add", "masked", {scores, mask})});
  const ValueId context = graph.add_node("MatMul", "context", {probs, heads("v", {0, 2, 1, 3})});
  const ValueId turned = graph.add_node("Transpose", "turned", {context}, {{"perm", Ints{0, 2, 1, 3}}});
  graph.add_output("y",
                   projected(graph.add_node("Reshape", "joined", {turned, constant("joined/dims", {0, 0, 8})}), "out"));
  return graph;
}

/// MultiHeadAttention looked at its mask in the run only: too late for the graph as it was to decide.
TEST_F(FusionRefusals, MasksOfALayerAreLookedAtWhenItIsPlanned) {
  constexpr std::int64_t kOne = 1;
  const Graph layers[] = {masked_layer("b", {"keys"}), masked_layer("b", {kOne, kOne, kOne, "keys"}),
                          masked_layer(kOne, {std::int64_t{4}, kOne, kOne, "keys"})};
  for (const Graph& graph : layers) {
    FusionReport report;
    fuse(graph, registry_, &report);
    ASSERT_EQ(report.count("attention"), 1) << report.text();
    EXPECT_EQ(report.fused[0].kind, "MultiHeadAttention");
    const bool flat = graph.inputs()[1].dims.size() == 1;
    const std::int64_t mask_batch = &graph == &layers[2] ? 4 : 1;
    const auto dims = [&](std::int64_t keys) {
      return std::vector<Dims>{{1, 3, 8}, flat ? Dims{keys} : Dims{mask_batch, 1, 1, keys}};
    };
    for (const std::int64_t keys : {2, 4}) expect_contains(refusal(graph, dims(keys)), "node 'masked'");
    // One batch entry becomes as many as the mask has.
    for (const std::int64_t keys : {1, 3}) {
      const std::vector<float> expected = result(graph, dims(keys), false);
      const std::vector<float> got = result(graph, dims(keys), true);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4f);
    }
  }
}

TEST_F(FusionRefusals, ABranchThatIsNotTakenMayBeWrong) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n", std::int64_t{4}});
  auto taken = std::make_shared<Tensor>(DataType::kBool, Dims{});
  *taken->data<bool>() = false;
  const ValueId condition = graph.add_constant("condition", taken);
  const std::size_t first = graph.nodes().size();
  const ValueId wrong = graph.add_node("Transpose", "wrong", {x}, {{"perm", Ints{7}}});
  graph.guard_nodes(first, {condition, true});
  const ValueId other = graph.add_node("Relu", "other", {x});
  graph.add_output("y", graph.add_node("If", "if", {condition, wrong, other}));
  EXPECT_EQ(result(graph, {{2, 4}}, true), result(graph, {{2, 4}}, false));
}

TEST_F(FusionRefusals, OneNameWithTwoSizesRunsTheGraphAsItIs) {
  // Reshape to the shape of b is left out where names hold; here they do not.
  Graph graph;
  const ValueId a = graph.add_input("a", DataType::kF32, {"n", "m"});
  const ValueId b = graph.add_input("b", DataType::kF32, {"n", "m"});
  const ValueId shape = graph.add_node("Shape", "shape", {b});
  graph.add_output("y", graph.add_node("Reshape", "reshape", {graph.add_node("Relu", "relu", {a}), shape}));
  const std::vector<Dims> dims{{2, 6}, {3, 4}};
  std::vector<TensorInfo> infos{{DataType::kF32, dims[0], true}, {DataType::kF32, dims[1], true}};
  const Session session(fuse(graph, registry_), registry_);
  EXPECT_EQ(session.output_infos(infos)[0].dims, (Dims{3, 4}));
  infos[1].dims = {2, 6};
  EXPECT_EQ(session.output_infos(infos)[0].dims, (Dims{2, 6}));
}

TEST_F(FusionRefusals, UnknownOperatorsAreLeftToTheSession) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Softmax", "softmax", {graph.add_node("NoSuchOp", "odd", {})}));
  static_cast<void>(x);
  EXPECT_EQ(fuse(graph, registry_).nodes().size(), 2u);
  expect_contains(error_of([&] { Session(fuse(graph, registry_), registry_); }, ErrorCode::kUnsupported), "NoSuchOp");
}

}  // namespace
}  // namespace headway::testing
