// torch.nn.MultiheadAttention as its exporters take it apart: the whole layer becomes one node, or what is not exactly
// it keeps its projections.
#include "tests/ops/fusion/fusion_case.h"

namespace headway::testing {
namespace {

/// torch.nn.MultiheadAttention over tokens [S, B, E]: one projection, its parts picked from an axis of three, heads
/// joined with the batch and taken apart again. `parts_first`: the axis of three lies outside of the heads.
ValueId torch_layer(FusionCase* c, ValueId tokens, bool parts_first, bool biased = true) {
  const ValueId all = c->op("Add", {c->op("MatMul", {tokens, c->weight({kE, 3 * kE})}), c->weight({3 * kE})});
  ValueId parts = kNoValue;
  if (parts_first) {
    parts = c->op("Unsqueeze", {c->reshape(all, {kS, kB, 3, kE}), c->ints({0})});
    parts = c->op("Squeeze", {c->transpose(parts, {3, 1, 2, 0, 4}), c->ints({3})});
  } else {
    parts = c->transpose(c->reshape(all, {kS, kB, kE, 3}), {3, 0, 1, 2});
  }
  const auto heads = [&](std::int64_t which) {
    const ValueId one = c->op("Gather", {parts, c->index(which)}, {{"axis", Attribute(std::int64_t{0})}});
    const ValueId joined = c->transpose(c->reshape(one, {kS, kB * kH, kD}), {1, 0, 2});
    return c->reshape(joined, {kB, kH, kS, kD});
  };
  const ValueId q = c->op("Mul", {heads(0), c->number(0.35f)});
  const ValueId p = c->softmax(c->op("MatMul", {q, c->transpose(heads(1), {0, 1, 3, 2})}));
  const ValueId o = c->transpose(c->op("MatMul", {p, heads(2)}), {2, 0, 1, 3});
  const ValueId rows = c->reshape(o, {kS * kB, kE});
  const ValueId w = c->weight({kE, kE});
  const ValueId y = biased ? c->op("Gemm", {rows, w, c->weight({kE})}, {{"transB", Attribute(std::int64_t{1})}})
                           : c->op("MatMul", {rows, w});
  return c->reshape(y, {kS, kB, kE});
}

TEST(FusionTorchLayer, TorchsLayerIsOneNode) {
  for (const bool names_lengths : {true, false}) {
    FusionCase c;
    c.names_lengths = names_lengths;
    const ValueId x = c.random_input("x", {kB, kS, kH * kD});
    c.graph.add_output("out", c.transpose(torch_layer(&c, c.transpose(x, {1, 0, 2}), true), {1, 0, 2}));
    expect_fused(&c, "none");
    EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
    // What put the sequence first is gone on both sides.
    EXPECT_EQ(fuse(c.graph, all_ops()).nodes().size(), 1u);
  }
}

TEST(FusionTorchLayer, TorchsLayerOverSequencesFirst) {
  FusionCase c;
  c.graph.add_output("out", torch_layer(&c, c.random_input("x", {kS, kB, kH * kD}), true));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
}

TEST(FusionTorchLayer, TorchsLayerWithoutABiasBelow) {
  FusionCase c;
  c.graph.add_output("out", torch_layer(&c, c.random_input("x", {kS, kB, kH * kD}), true, false));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
}

TEST(FusionTorchLayer, HeadsWhoseColumnsLieApartKeepTheirProjection) {
  FusionCase c;
  c.graph.add_output("out", torch_layer(&c, c.random_input("x", {kS, kB, kH * kD}), false));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 0);
}

/// The same where the weights are wanted: the core stays over [B·H, S, D], the weights are read as `weights_dims` and
/// averaged. A mask of padding, when there is one, is expanded over the heads, joined with the batch and added to one
/// of pairs.
void torch_layer_with_weights(FusionCase* c, bool masked, const std::vector<std::int64_t>& weights_dims) {
  const ValueId tokens = c->transpose(c->random_input("x", {kB, kS, kE}), {1, 0, 2});
  const auto heads = [&] {
    const ValueId y = c->op("Add", {c->op("MatMul", {tokens, c->weight({kE, kE})}), c->weight({kE})});
    return c->transpose(c->reshape(y, {kS, kB * kH, kD}), {1, 0, 2});
  };
  const ValueId q = c->op("Mul", {heads(), c->number(0.35f)});
  ValueId scores = c->op("MatMul", {q, c->transpose(heads(), {0, 2, 1})});
  if (masked) {
    const ValueId hidden = c->op("Not", {c->bool_input("padding", {kB, kS}, 0.6, {1})});
    const ValueId mask = c->reshape(c->op("Where", {hidden, c->number(kInfiniteFill), c->number(0)}), {kB, 1, 1, kS});
    const ValueId expanded = c->op("Expand", {mask, c->ints({kB, kH, 1, kS})});
    const ValueId joined = c->reshape(expanded, {kB * kH, 1, kS});
    scores = c->op("Add", {c->op("Add", {c->weight({1, kS, kS}), joined}), scores});
  }
  const ValueId p = c->softmax(scores);
  const ValueId o = c->reshape(c->transpose(c->op("MatMul", {p, heads()}), {1, 0, 2}), {kS * kB, kE});
  const ValueId y = c->op("Gemm", {o, c->weight({kE, kE}), c->weight({kE})}, {{"transB", Attribute(std::int64_t{1})}});
  c->graph.add_output("out", c->transpose(c->reshape(y, {kS, kB, kE}), {1, 0, 2}));
  c->graph.add_output("weights", c->op("ReduceMean", {c->reshape(p, weights_dims), c->ints({1})}));
}

TEST(FusionTorchLayer, TorchsLayerWithItsWeights) {
  for (const bool masked : {false, true}) {
    FusionCase c;
    torch_layer_with_weights(&c, masked, {kB, kH, kS, kS});
    // The batch entry without a key: the output and the averaged weights are NaN, as they are unfused.
    expect_fused(&c, masked ? "float" : "none", masked ? kS * kH * kD + kS * kS : 0);
    EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
    EXPECT_TRUE(c.report.fused[0].weights_output);
  }
}

TEST(FusionTorchLayer, WeightsReadInAnotherOrderLeaveBatchAndHeadsJoined) {
  FusionCase c;
  torch_layer_with_weights(&c, false, {kH, kB, kS, kS});
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 0);
}

}  // namespace
}  // namespace headway::testing
