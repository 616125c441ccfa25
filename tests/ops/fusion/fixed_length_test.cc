// Lengths that a file names as numbers although its inputs leave them open, as exporters do that took one run's sizes
// for constants: the graph as it is runs for no other, and neither does what it becomes.
#include <array>
#include <string>
#include <vector>

#include "tests/ops/fusion/fusion_case.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

std::string refusal_at(const Graph& graph, const std::vector<Dims>& dims) {
  std::vector<TensorInfo> infos;
  for (const Dims& one : dims) infos.push_back({DataType::kF32, one, true});
  return error_of([&] { Session(graph, all_ops()).output_infos(infos); });
}
/// Refused at these dims, in the same words.
void expect_refused(const FusionCase& c, const std::vector<Dims>& dims) {
  const std::string unfused = refusal_at(c.graph, dims);
  expect_contains(unfused, "(Reshape)");
  EXPECT_EQ(refusal_at(fuse(c.graph, all_ops()), dims), unfused);
}

/// torch.nn.MultiheadAttention that gives its weights, each of its lengths a number or 0: as it is.
void torch_layer(FusionCase* c, std::int64_t query_len, std::int64_t key_len, std::int64_t value_len) {
  c->names_lengths = true;
  const ValueId tokens = c->transpose(c->random_input("x", {kB, kS, kE}), {1, 0, 2});
  const auto heads = [&](std::int64_t length) {
    const ValueId y = c->op("MatMul", {tokens, c->weight({kE, kE})});
    return c->transpose(c->reshape(y, {length, kB * kH, kD}), {1, 0, 2});
  };
  const ValueId q = heads(query_len);
  const ValueId p = c->softmax(c->op("MatMul", {q, c->transpose(heads(key_len), {0, 2, 1})}));
  const ValueId o = c->transpose(c->op("MatMul", {p, heads(value_len)}), {1, 0, 2});
  const ValueId rows = c->reshape(o, {query_len == 0 ? -1 : query_len * kB, kE});
  const ValueId y = c->op("Gemm", {rows, c->weight({kE, kE}), c->weight({kE})});
  c->graph.add_output("out", c->reshape(y, {query_len == 0 ? -1 : query_len, kB, kE}));
  c->graph.add_output("weights", c->reshape(p, {kB, kH, query_len == 0 ? -1 : query_len, kS}));
}

TEST(FusionFixedLengths, OfTorchsLayerAreTheOnlyOnes) {
  for (const auto& [q, k, v] : {std::array<std::int64_t, 3>{kS, kS, kS}, {0, kS, 0}, {0, 0, kS}, {kS, 0, 0}}) {
    SCOPED_TRACE(::testing::Message() << q << ' ' << k << ' ' << v);
    FusionCase c;
    torch_layer(&c, q, k, v);
    EXPECT_LE(c.fused_minus_unfused(), 1e-5);
    expect_refused(c, {{kB, kS + 2, kE}});
  }
}

TEST(FusionFixedLengths, OfTorchsLayerBecomeOneNode) {
  FusionCase c;
  torch_layer(&c, kS, kS, kS);
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
}

/// Heads [B, H, S, D] of tokens [B, S, E] with the length a number.
TEST(FusionFixedLengths, OfALayerAreTheOnlyOnes) {
  FusionCase c;
  c.names_lengths = true;
  const ValueId x = c.random_input("x", {kB, kS, kE});
  const auto heads = [&](const std::vector<std::int64_t>& perm) {
    const ValueId y = c.op("MatMul", {x, c.weight({kE, kE})});
    return c.transpose(c.reshape(y, {kB, kS, kH, kD}), perm);
  };
  const ValueId p = c.softmax(c.op("MatMul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})}));
  const ValueId o = c.transpose(c.op("MatMul", {p, heads({0, 2, 1, 3})}), {0, 2, 1, 3});
  c.graph.add_output("out", c.op("MatMul", {c.reshape(o, {kB, kS, kE}), c.weight({kE, kE})}));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
  expect_refused(c, {{kB, kS + 2, kE}});
}

/// Rows [B · S, E] of an output projection, their number one that only B · S = 10 gives.
TEST(FusionFixedLengths, OfRowsBelowALayerAreTheOnlyOnes) {
  FusionCase c;
  c.names_lengths = true;
  const ValueId x = c.random_input("x", {kB, kS, kE});
  const auto heads = [&](const std::vector<std::int64_t>& perm) {
    return c.transpose(c.reshape(c.op("MatMul", {x, c.weight({kE, kE})}), {0, 0, kH, kD}), perm);
  };
  const ValueId p = c.softmax(c.op("MatMul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})}));
  const ValueId o = c.transpose(c.op("MatMul", {p, heads({0, 2, 1, 3})}), {0, 2, 1, 3});
  const ValueId y = c.op("Gemm", {c.reshape(o, {kB * kS, kE}), c.weight({kE, kE}), c.weight({kE})});
  c.graph.add_output("out", c.op("Reshape", {y, c.op("Shape", {x})}));
  expect_fused(&c, "none");
  expect_refused(c, {{kB, kS + 2, kE}});
}

/// A shape that goes through a Reshape of its own, to as many elements as it does not have.
TEST(FusionFixedLengths, OfShapesAreTheOnlyOnes) {
  FusionCase c;
  c.names_lengths = true;
  const ValueId x = c.random_input("x", {kB, kS, kE});
  const ValueId length = c.op("Slice", {c.op("Shape", {x}), c.ints({1}), c.ints({2})});
  const ValueId dims = c.op("Reshape", {length, length});
  c.graph.add_output("out", c.op("Reshape", {c.op("Relu", {x}), c.op("Concat", {c.ints({kB}), dims, c.ints({kE})},
                                                                     {{"axis", Attribute(std::int64_t{0})}})}));
  expect_refused(c, {{kB, kS, kE}});
}

/// An index that a list of sizes does not have, in arithmetic that the fused graph may do without.
TEST(FusionFixedLengths, AnIndexBeyondAShapeIsRefusedFusedToo) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n", std::int64_t{4}});
  auto three = std::make_shared<Tensor>(DataType::kI64, Dims{1});
  *three->data<std::int64_t>() = 3;
  const ValueId size = graph.add_node(
      "Gather", "size", {graph.add_node("Shape", "shape", {x}), graph.add_constant("three", std::move(three))});
  // Nothing of the size is left: it is multiplied by no elements.
  graph.add_output("y", graph.add_node("Reshape", "same", {x, graph.add_node("Shape", "again", {x})}));
  graph.add_output("size", graph.add_node("Shape", "count", {size}));
  const std::string unfused = refusal_at(graph, {{2, 4}});
  expect_contains(unfused, "Gather index is 3, expected -2 to 1");
  EXPECT_EQ(refusal_at(fuse(graph, all_ops()), {{2, 4}}), unfused);
}

/// Keys and values whose heads are repeated by an Expand to a length.
TEST(FusionFixedLengths, OfRepeatedHeadsAreTheOnlyOnes) {
  FusionCase c;
  const ValueId q = c.random_input("q", {kB, kH, kS, kD});
  const auto repeated = [&](const std::string& name) {
    const ValueId x = c.graph.add_input(name, DataType::kF32, {kB, std::int64_t{1}, "s", kD});
    const ValueId one = c.op("Unsqueeze", {x, c.ints({2})});
    return c.reshape(c.op("Expand", {one, c.ints({kB, 1, kH, kS, kD})}), {kB, kH, kS, kD});
  };
  const ValueId p = c.softmax(c.op("MatMul", {q, c.transpose(repeated("k"), {0, 1, 3, 2})}));
  c.graph.add_output("out", c.op("MatMul", {p, repeated("v")}));
  const Dims longer{kB, 1, kS + 2, kD};
  const std::string unfused = refusal_at(c.graph, {{kB, kH, kS, kD}, longer, longer});
  expect_contains(unfused, "(Expand)");
  EXPECT_EQ(refusal_at(fuse(c.graph, all_ops()), {{kB, kH, kS, kD}, longer, longer}), unfused);
}

}  // namespace
}  // namespace headway::testing
