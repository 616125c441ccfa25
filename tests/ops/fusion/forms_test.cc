// Every way of writing attention that exporters and published files have: it is found, and the numbers stay, rows that
// see no key included.
#include "tests/ops/fusion/fusion_case.h"

namespace headway::testing {
namespace {

/// Queries, keys and values as [B, S, H, D] inputs.
struct Qkv {
  ValueId q, k, v;
};
Qkv tokens(FusionCase* c, std::int64_t keys = kS, std::int64_t kv_heads = kH) {
  return {c->random_input("q", {kB, kS, kH, kD}), c->random_input("k", {kB, keys, kv_heads, kD}),
          c->random_input("v", {kB, keys, kv_heads, kD})};
}
const std::vector<std::int64_t> kHeads = {0, 2, 1, 3};
const std::vector<std::int64_t> kHeadsTransposed = {0, 2, 3, 1};

void finish(FusionCase* c, ValueId p, ValueId v) {
  c->graph.add_output("out", c->transpose(c->op("MatMul", {p, v}), kHeads));
}

/// Softmax(Add(mask, Mul(MatMul(Q, Kᵀ), s))) with a Where for the mask.
void eager(FusionCase* c, float fill, bool guarded) {
  const Qkv t = tokens(c);
  const ValueId visible = c->bool_input("mask", {kB, 1, kS, kS}, 0.6, {2});
  const ValueId scores = c->op("MatMul", {c->transpose(t.q, kHeads), c->transpose(t.k, kHeadsTransposed)});
  const ValueId mask = c->op("Where", {visible, c->number(0), c->number(fill)});
  ValueId p = c->softmax(c->op("Add", {mask, c->op("Mul", {scores, c->number(0.35f)})}));
  if (guarded) p = c->guard(p);
  finish(c, p, c->transpose(t.v, kHeads));
}

TEST(FusionForms, EagerWithTheLowestFloatSharesAnEmptyRowEvenly) {
  FusionCase c;
  eager(&c, kLowestFill, false);
  expect_fused(&c, "float");
}
TEST(FusionForms, MinusInfinityWithoutAGuardGivesNan) {
  FusionCase c;
  eager(&c, kInfiniteFill, false);
  expect_fused(&c, "bool", kH * kD);
}
TEST(FusionForms, MinusInfinityWithAGuardGivesZero) {
  FusionCase c;
  eager(&c, kInfiniteFill, true);
  expect_fused(&c, "bool");
}
TEST(FusionForms, AModestFillStaysANumber) {
  FusionCase c;
  eager(&c, -3.0f, false);
  expect_fused(&c, "float");
}

TEST(FusionForms, RootOfTheScaleOnBothSides) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId q = c.op("Mul", {c.transpose(t.q, kHeads), c.number(0.6f)});
  const ValueId k = c.op("Mul", {c.transpose(t.k, kHeadsTransposed), c.number(0.6f)});
  finish(&c, c.guard(c.softmax(c.op("MatMul", {q, k}))), c.transpose(t.v, kHeads));
  expect_fused(&c, "none");
}

TEST(FusionForms, KeysTransposedBetweenTwoReshapes) {
  FusionCase c;
  const Qkv t = tokens(&c);
  ValueId k = c.reshape(c.transpose(t.k, kHeads), {-1, kS, kD});
  k = c.reshape(c.transpose(k, {0, 2, 1}), {kB, kH, kD, kS});
  finish(&c, c.softmax(c.op("MatMul", {c.transpose(t.q, kHeads), k})), c.transpose(t.v, kHeads));
  expect_fused(&c, "none");
}

TEST(FusionForms, OnnxAttentionTakesItsTransposes) {
  for (const std::int64_t causal : {0, 1}) {
    FusionCase c;
    const Qkv t = tokens(&c);
    const ValueId out =
        c.op("onnx.Attention", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeads), c.transpose(t.v, kHeads)},
             {{"is_causal", Attribute(causal)}}, "attention");
    c.graph.add_output("out", c.transpose(out, kHeads));
    expect_fused(&c, causal != 0 ? "causal" : "none");
  }
}

TEST(FusionForms, OldBertDividesAndAddsAPenalty) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId visible = c.bool_input("mask", {kB, kS}, 0.6, {1});
  const ValueId as_float =
      c.op("Cast", {c.op("Unsqueeze", {visible, c.ints({1, 2})})}, {{"to", Attribute(std::int64_t{1})}});
  const ValueId penalty = c.op("Mul", {c.op("Sub", {c.number(1), as_float}), c.number(-10000)});
  const ValueId scores = c.op(
      "Div", {c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)}), c.number(2.8284271f)});
  finish(&c, c.softmax(c.op("Add", {scores, penalty})), c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, DistilBertFillsWhereTheMaskIsZero) {
  for (const float fill : {kLowestFill, -1e9f, kInfiniteFill}) {
    FusionCase c;
    const Qkv t = tokens(&c);
    const ValueId hidden = c.op("Not", {c.bool_input("mask", {kB, 1, 1, kS}, 0.6, {1})});
    const ValueId q = c.op("Div", {c.transpose(t.q, kHeads), c.number(2.8284271f)});
    const ValueId scores = c.op("MatMul", {q, c.transpose(t.k, kHeadsTransposed)});
    finish(&c, c.softmax(c.op("Where", {hidden, c.number(fill), scores})), c.transpose(t.v, kHeads));
    expect_fused(&c, std::isinf(fill) ? "bool" : "float", std::isinf(fill) ? kH * kS * kD : 0);
  }
}

/// A W × W triangle of ones, sliced to S × S at `ends`, or where it says when it is left out.
ValueId triangle(FusionCase* c, DataType type, ValueId ends = kNoValue) {
  constexpr std::int64_t kW = 16;
  auto tensor = std::make_shared<Tensor>(type, Dims{1, 1, kW, kW});
  for (std::int64_t i = 0; i < kW * kW; ++i) {
    const bool visible = i % kW <= i / kW;
    if (type == DataType::kBool) {
      tensor->data<bool>()[i] = visible;
    } else {
      tensor->data<float>()[i] = visible ? 1.0f : 0.0f;
    }
  }
  const ValueId whole = c->graph.add_constant("triangle", std::move(tensor));
  if (ends == kNoValue) ends = c->ints({kS, kS});
  return c->op("Slice", {whole, c->ints({0, 0}), ends, c->ints({2, 3})});
}

TEST(FusionForms, Gpt2FillsBehindTheDivision) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId scores = c.op(
      "Div", {c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)}), c.number(2.8284271f)});
  finish(&c, c.softmax(c.op("Where", {triangle(&c, DataType::kBool), scores, c.number(-1e4f)})),
         c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

/// scores · b − (1 − b) · c
ValueId penalised(FusionCase* c, ValueId scores, ValueId b, float amount) {
  const ValueId hidden = c->op("Sub", {c->number(1), b});
  return c->op("Sub", {c->op("Mul", {scores, b}, {}, "kept"), c->op("Mul", {hidden, c->number(amount)})});
}

TEST(FusionForms, OldGpt2KeepsByAProductAndPenalisesTheRest) {
  for (const bool ends_are_known : {true, false}) {
    for (const bool divides : {true, false}) {
      FusionCase c;
      c.names_lengths = !ends_are_known;
      const Qkv t = tokens(&c);
      const ValueId product = c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)});
      const ValueId scores =
          divides ? c.op("Div", {product, c.number(2.8284271f)}) : c.op("Mul", {product, c.number(0.35355339f)});
      const ValueId length = c.op("Gather", {c.op("Shape", {t.k}), c.ints({1, 1})});
      const ValueId ends = ends_are_known ? kNoValue : length;
      const ValueId b = triangle(&c, DataType::kF32, ends);
      finish(&c, c.softmax(penalised(&c, scores, b, 1e4f)), c.transpose(t.v, kHeads));
      expect_fused(&c, "float");
    }
  }
}

TEST(FusionForms, APenaltyBeforeTheScaleIsScaledToo) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId product = c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)});
  const ValueId masked = penalised(&c, product, triangle(&c, DataType::kF32), 1e5f);
  finish(&c, c.softmax(c.op("Div", {masked, c.number(2.8284271f)})), c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, AFillBeforeTheDivisionIsDividedToo) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId scores = c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)});
  const ValueId filled = c.op("Where", {triangle(&c, DataType::kBool), scores, c.number(-1e5f)});
  finish(&c, c.softmax(c.op("Div", {filled, c.number(2.8284271f)})), c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, BartJoinsBatchAndHeads) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId mask = c.random_input("mask", {kB, 1, kS, kS});
  const auto joined = [&](ValueId x) { return c.reshape(c.transpose(x, kHeads), {kB * kH, -1, kD}); };
  ValueId s = c.op("MatMul", {joined(t.q), c.transpose(joined(t.k), {0, 2, 1})});
  s = c.reshape(c.op("Add", {c.reshape(s, {kB, kH, kS, kS}), mask}), {kB * kH, kS, kS});
  const ValueId o = c.reshape(c.op("MatMul", {c.softmax(s), joined(t.v)}), {kB, kH, kS, kD});
  c.graph.add_output("out", c.transpose(o, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, EinsumKeepsTokensFirst) {
  FusionCase c;
  const Qkv t = tokens(&c, 7);
  const ValueId s = c.op("Einsum", {t.q, t.k}, {{"equation", std::string("bqhd,bkhd->bhqk")}});
  const ValueId p = c.softmax(c.op("Mul", {s, c.number(0.35f)}));
  c.graph.add_output("out", c.op("Einsum", {p, t.v}, {{"equation", std::string("bhqk,bkhd->bqhd")}}));
  expect_fused(&c, "none");
}

TEST(FusionForms, StableDiffusionAddsNothingAcross77Keys) {
  FusionCase c;
  const Qkv t = tokens(&c, 77);
  const ValueId s =
      c.op("Mul", {c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)}), c.number(0.35f)});
  finish(&c, c.softmax(c.op("Add", {s, c.number(0, {1, 1, 1, 1})})), c.transpose(t.v, kHeads));
  expect_fused(&c, "none");
}

TEST(FusionForms, T5AddsAPositionBiasAndAMask) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId bias = c.random_input("bias", {1, kH, kS, kS});
  const ValueId mask =
      c.op("Where", {c.bool_input("mask", {kB, 1, 1, kS}, 0.6, {1}), c.number(0), c.number(kLowestFill)});
  const ValueId s = c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)});
  finish(&c, c.softmax(c.op("Add", {c.op("Add", {s, bias}), mask})), c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, ASoftcapComesBeforeTheMask) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId mask = c.random_input("mask", {kB, 1, kS, kS});
  ValueId s = c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)});
  s = c.op("Mul", {c.op("Tanh", {c.op("Div", {c.op("Mul", {s, c.number(0.35f)}), c.number(2)})}), c.number(2)});
  finish(&c, c.softmax(c.op("Add", {s, mask})), c.transpose(t.v, kHeads));
  expect_fused(&c, "float");
}

TEST(FusionForms, RepeatedHeadsAreReadOnce) {
  FusionCase c;
  const Qkv t = tokens(&c, kS, 1);
  const auto repeated = [&](ValueId x) {
    const ValueId one = c.op("Unsqueeze", {c.transpose(x, kHeads), c.ints({2})});
    return c.reshape(c.op("Expand", {one, c.ints({kB, 1, kH, kS, kD})}), {kB, kH, kS, kD});
  };
  const ValueId k = c.transpose(repeated(t.k), {0, 1, 3, 2});
  finish(&c, c.softmax(c.op("MatMul", {c.transpose(t.q, kHeads), k})), repeated(t.v));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.fused[0].heads, kH);
  EXPECT_EQ(c.report.fused[0].kv_heads, 1);
}

TEST(FusionForms, WeightsThatSomebodyReadsAreAnOutput) {
  FusionCase c;
  const Qkv t = tokens(&c);
  const ValueId p = c.softmax(c.op("MatMul", {c.transpose(t.q, kHeads), c.transpose(t.k, kHeadsTransposed)}));
  finish(&c, p, c.transpose(t.v, kHeads));
  c.graph.add_output("weights", p);
  expect_fused(&c, "none");
  EXPECT_TRUE(c.report.fused[0].weights_output);
}

TEST(FusionForms, TheWholeFrameIsOneLayer) {
  FusionCase c;
  const ValueId x = c.random_input("x", {kB, kS, kE});
  const auto projected = [&] {
    const ValueId y = c.op("Add", {c.op("MatMul", {x, c.weight({kE, kE})}), c.weight({kE})});
    return c.reshape(y, {kB, kS, kH, kD});
  };
  const ValueId q = c.transpose(projected(), kHeads);
  const ValueId k = c.transpose(projected(), kHeadsTransposed);
  const ValueId v = c.transpose(projected(), kHeads);
  const ValueId p = c.softmax(c.op("Mul", {c.op("MatMul", {q, k}), c.number(0.35f)}));
  const ValueId o = c.reshape(c.transpose(c.op("MatMul", {p, v}), kHeads), {kB, kS, kE});
  c.graph.add_output("out", c.op("Add", {c.op("MatMul", {o, c.weight({kE, kE})}), c.weight({kE})}));
  expect_fused(&c, "none");
  EXPECT_EQ(c.report.count("MultiHeadAttention"), 1);
  EXPECT_EQ(c.report.fused[0].head_dim, kD);
}

}  // namespace
}  // namespace headway::testing
