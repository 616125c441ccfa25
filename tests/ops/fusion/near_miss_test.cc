// What is almost attention stays as it is, and the report names the edge that failed.
#include <array>

#include "tests/ops/fusion/fusion_case.h"

namespace headway::testing {
namespace {

const Dims kHeadDims = {2, 3, 5, 8};

struct Parts {
  ValueId scores, v;
};
Parts parts(FusionCase* c) {
  const ValueId q = c->random_input("q", kHeadDims);
  const ValueId k = c->random_input("k", kHeadDims);
  const ValueId v = c->random_input("v", kHeadDims);
  return {c->op("MatMul", {q, c->transpose(k, {0, 1, 3, 2})}, {}, "scores"), v};
}
void expect_missed(FusionCase* c, const std::string& edge) {
  EXPECT_EQ(c->fused_minus_unfused(), 0);
  EXPECT_EQ(c->report.count("attention"), 0);
  ASSERT_EQ(c->report.missed.size(), 1u);
  EXPECT_EQ(c->report.missed[0].node, "softmax");
  EXPECT_NE(c->report.missed[0].edge.find(edge), std::string::npos) << c->report.missed[0].edge;
}

TEST(FusionNearMiss, ScoresThatSomebodyElseReads) {
  FusionCase c;
  const Parts p = parts(&c);
  c.graph.add_output("out", c.op("MatMul", {c.softmax(p.scores), p.v}));
  c.graph.add_output("scores", p.scores);
  expect_missed(&c, "node 'scores' (MatMul) has another consumer");
}

/// A fill takes the place of a masked score. As terms of one sum a row that the Where hides whole would still show the
/// mask below.
TEST(FusionNearMiss, AFillOverScoresThatAreMasked) {
  for (const float fill : {-1e4f, -1e9f, kLowestFill}) {
    FusionCase c;
    const Parts p = parts(&c);
    const ValueId added = c.op("Add", {p.scores, c.floats({0, 0, kInfiniteFill, 0, -1e4f})});
    const ValueId kept = c.bool_input("kept", {5, 5}, 0.5, {1, 3});
    const ValueId filled = c.op("Where", {kept, added, c.number(fill)}, {}, "filled");
    c.graph.add_output("out", c.op("MatMul", {c.softmax(filled), p.v}));
    expect_missed(&c, "node 'filled' (Where) fills in over scores that have a mask already");
  }
}

TEST(FusionNearMiss, ANumberIsNoMask) {
  FusionCase c;
  const Parts p = parts(&c);
  c.graph.add_output("out", c.op("MatMul", {c.softmax(c.op("Add", {p.scores, c.number(0.5f)})), p.v}));
  EXPECT_LE(c.fused_minus_unfused(), 1e-5);
}

/// One node gives context and probabilities both, so values made of the latter would close a cycle.
TEST(FusionNearMiss, ValuesMadeOfTheProbabilities) {
  FusionCase c;
  const Parts p = parts(&c);
  const ValueId probs = c.softmax(p.scores);
  c.graph.add_output("out", c.op("MatMul", {probs, c.transpose(probs, {0, 1, 3, 2})}));
  expect_missed(&c, "is made of the probabilities");
}

TEST(FusionNearMiss, ASoftmaxOverAnotherAxis) {
  FusionCase c;
  const Parts p = parts(&c);
  const ValueId s = c.op("Softmax", {p.scores}, {{"axis", Attribute(std::int64_t{1})}}, "softmax");
  c.graph.add_output("out", c.op("MatMul", {s, p.v}));
  expect_missed(&c, "is over axis 1");
}

TEST(FusionNearMiss, AScaleThatIsNotOneNumber) {
  FusionCase c;
  const Parts p = parts(&c);
  const ValueId s = c.op("Mul", {p.scores, c.weight({5})}, {}, "scaled");
  c.graph.add_output("out", c.op("MatMul", {c.softmax(s), p.v}));
  expect_missed(&c, "node 'scaled' (Mul) multiplies by");
}

TEST(FusionNearMiss, ProbabilitiesThatMeetNoValues) {
  FusionCase c;
  const Parts p = parts(&c);
  c.graph.add_output("out", c.op("Neg", {c.softmax(p.scores)}, {}, "negated"));
  expect_missed(&c, "goes to node 'negated' (Neg)");
}

/// Attributes that a node's own rule never reads may be of any kind.
TEST(FusionNearMiss, AttributesThatNoRuleReads) {
  FusionCase c;
  const ValueId x = c.random_input("x", {2, 3, 5, 8});
  const auto mean = [&](ValueId of) {
    return c.op("ReduceMean", {of, c.ints({-1})}, {{"axes", Attribute(std::int64_t{7})}});
  };
  const ValueId root = c.op("Sqrt", {c.op("Add", {mean(c.op("Mul", {x, x})), c.number(1e-3f)})});
  c.graph.add_output("norm", c.op("Mul", {c.op("Div", {x, root}), c.weight({8})}));
  const Parts p = parts(&c);
  const ValueId context = c.op("MatMul", {c.softmax(p.scores), p.v});
  c.graph.add_output("out", c.op("Neg", {context}, {{"perm", Attribute(std::int64_t{7})}}));
  EXPECT_LE(c.fused_minus_unfused(), 1e-5);
  EXPECT_EQ(c.report.count("attention"), 1) << c.report.text();
}

/// Probabilities have the batch of the scores, whatever the batch of the values.
TEST(FusionNearMiss, ValuesOfMoreBatchEntriesThanTheProbabilities) {
  FusionCase c;
  const ValueId q = c.random_input("q", {1, 3, 5, 8});
  const ValueId k = c.random_input("k", {1, 3, 5, 8});
  const ValueId v = c.random_input("v", {4, 3, 5, 8});
  const ValueId p = c.softmax(c.op("MatMul", {q, c.transpose(k, {0, 1, 3, 2})}));
  c.graph.add_output("out", c.op("MatMul", {p, v}));
  c.graph.add_output("weights", p);
  EXPECT_LE(c.fused_minus_unfused(), 1e-5);
}

/// Attention over [B·H, S, D] whose parts were, or become, [a, b, S, D] with a · b = 6.
struct JoinedDims {
  std::int64_t query[2], key[2], value[2], scores[2], out[2], weights[2];
};
void joined_attention(FusionCase* c, const JoinedDims& d) {
  const auto joined = [&](const char* name, const std::int64_t(&apart)[2]) {
    return c->reshape(c->random_input(name, {apart[0], apart[1], 5, 8}), {6, 5, 8});
  };
  ValueId s = c->op("MatMul", {joined("q", d.query), c->transpose(joined("k", d.key), {0, 2, 1})});
  s = c->op("Add", {c->reshape(s, {d.scores[0], d.scores[1], 5, 5}), c->weight({d.scores[0], d.scores[1], 1, 5})});
  const ValueId p = c->softmax(c->reshape(s, {6, 5, 5}));
  c->graph.add_output("out", c->reshape(c->op("MatMul", {p, joined("v", d.value)}), {d.out[0], d.out[1], 5, 8}));
  c->graph.add_output("weights", c->reshape(p, {d.weights[0], d.weights[1], 5, 5}));
}

/// The same elements in another order of batch and heads: broadcast or multiplied, the operator's result has other
/// dims than the nodes'.
TEST(FusionNearMiss, BatchAndHeadsThatComeApartInAnotherWay) {
  const JoinedDims plain{{2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}};
  FusionCase same;
  joined_attention(&same, plain);
  expect_fused(&same, "float");
  for (const auto& apart : {std::array<std::int64_t, 2>{3, 2}, {1, 6}, {6, 1}}) {
    for (int part = 0; part < 6; ++part) {
      SCOPED_TRACE(::testing::Message() << "part " << part << " " << apart[0] << ", " << apart[1]);
      for (const std::int64_t batch : {2, 1, 6}) {
        JoinedDims dims;
        std::int64_t(*const parts[6])[2] = {&dims.query,  &dims.key, &dims.value,
                                            &dims.scores, &dims.out, &dims.weights};
        for (auto* const one : parts) (*one)[0] = batch, (*one)[1] = 6 / batch;
        (*parts[part])[0] = apart[0];
        (*parts[part])[1] = apart[1];
        FusionCase c;
        joined_attention(&c, dims);
        EXPECT_LE(c.fused_minus_unfused(), 1e-5);
        EXPECT_EQ(c.report.count("attention"), apart[0] == batch ? 1 : 0) << c.report.text();
      }
    }
  }
}

/// A mask over joined batch and heads is not one over heads.
TEST(FusionNearMiss, AMaskOverJoinedBatchAndHeads) {
  FusionCase c;
  const ValueId q = c.random_input("q", {6, 1, 5, 8});
  const ValueId k = c.random_input("k", {6, 1, 5, 8});
  const ValueId v = c.random_input("v", {6, 1, 5, 8});
  const ValueId s = c.reshape(c.op("MatMul", {q, c.transpose(k, {0, 1, 3, 2})}), {6, 5, 5});
  const ValueId p = c.softmax(c.reshape(c.op("Add", {s, c.weight({6, 1, 5})}), {6, 1, 5, 5}));
  c.graph.add_output("out", c.op("MatMul", {p, v}));
  expect_missed(&c, "is a mask of joined batch and heads");
}

TEST(FusionNearMiss, AClassifierIsNoAttention) {
  FusionCase c;
  const ValueId x = c.random_input("x", {2, 8});
  c.graph.add_output("out", c.softmax(c.op("MatMul", {x, c.weight({8, 4})}, {}, "logits")));
  expect_missed(&c, "node 'logits' (MatMul) multiplies by constant");
}

TEST(FusionNearMiss, AFillThatDoesNotHide) {
  FusionCase c;
  const Parts p = parts(&c);
  const ValueId visible = c.bool_input("mask", {2, 1, 5, 5}, 0.6, {});
  const ValueId s = c.op("Where", {visible, p.scores, c.number(-5)}, {}, "filled");
  c.graph.add_output("out", c.op("MatMul", {c.softmax(s), p.v}));
  expect_missed(&c, "node 'filled' (Where) fills in");
}

/// A penalty that is no fill: too small to hide, of two sizes, or beside a factor that is not 0 or 1.
TEST(FusionNearMiss, PenaltiesThatDoNotHide) {
  struct Penalty {
    std::vector<float> kept, taken;
  };
  for (const Penalty& penalty :
       {Penalty{{1, 1, 0, 1, 0}, {0, 0, 5, 0, 5}}, Penalty{{1, 1, 0, 1, 0}, {0, 0, 1e4f, 0, 2e4f}},
        Penalty{{1, 1, 0, 1, 0}, {0, 1e4f, 1e4f, 0, 1e4f}}, Penalty{{1, 0.5f, 0, 1, 0}, {0, 0, 1e4f, 0, 1e4f}}}) {
    FusionCase c;
    const Parts p = parts(&c);
    const ValueId kept = c.op("Mul", {p.scores, c.floats(penalty.kept)}, {}, "kept");
    const ValueId s = c.op("Sub", {kept, c.floats(penalty.taken)});
    c.graph.add_output("out", c.op("MatMul", {c.softmax(s), p.v}));
    expect_missed(&c, "node 'kept' (Mul) multiplies by");
  }
}

TEST(FusionNearMiss, ReadersInFrontOfTheGuard) {
  FusionCase c;
  const Parts p = parts(&c);
  const ValueId raw = c.softmax(p.scores);
  c.graph.add_output("out", c.op("MatMul", {c.guard(raw), p.v}));
  c.graph.add_output("weights", raw);
  expect_missed(&c, "in front of the guard");
}

/// Heads that are tiled, not repeated: query head h reads key head h mod Hkv.
TEST(FusionNearMiss, TiledHeadsAreNotReadAsRepeatedOnes) {
  FusionCase c;
  const ValueId q = c.random_input("q", {2, 4, 5, 8});
  const ValueId k = c.random_input("k", {2, 2, 5, 8});
  const ValueId v = c.random_input("v", {2, 2, 5, 8});
  const auto tiled = [&](ValueId x) {
    const ValueId many = c.op("Expand", {c.op("Unsqueeze", {x, c.ints({1})}), c.ints({2, 2, 2, 5, 8})});
    return c.reshape(many, {2, 4, 5, 8});
  };
  const ValueId s = c.op("MatMul", {q, c.transpose(tiled(k), {0, 1, 3, 2})});
  c.graph.add_output("out", c.op("MatMul", {c.softmax(s), tiled(v)}));
  EXPECT_LE(c.fused_minus_unfused(), 1e-5);
  ASSERT_EQ(c.report.count("attention"), 1);
  EXPECT_EQ(c.report.fused[0].kv_heads, 4);
}

}  // namespace
}  // namespace headway::testing
