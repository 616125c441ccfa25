// Defaults and sizes of a spec: what an absent size follows from, and that a size of 0 is none of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/runtime/error_of.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

AttentionSpec small_spec() {
  AttentionSpec spec;
  spec.num_heads = 4;
  spec.query_len = 3;
  spec.key_len = 5;
  spec.head_dim = 8;
  return spec;
}

TEST(SpecDefaults, FollowFromTheOtherSizes) {
  const AttentionSpec complete = Attention(small_spec()).spec();
  EXPECT_EQ(complete.num_kv_heads, 4);
  EXPECT_EQ(complete.value_head_dim, 8);
  EXPECT_FLOAT_EQ(complete.scale.value(), static_cast<float>(1 / std::sqrt(8.0)));
  EXPECT_EQ(complete.window.left, Window::kOpen);
}

TEST(SpecDefaults, NoKeyHeadsAreNotADefault) {
  AttentionSpec spec = small_spec();
  spec.num_kv_heads = 0;
  EXPECT_EQ(error_of([&] { const Attention attention(spec); }),
            "num_heads is 4, expected a multiple of num_kv_heads = 0");
}

TEST(SpecDefaults, NegativeSizesAreNotADefault) {
  AttentionSpec spec = small_spec();
  spec.value_head_dim = -1;
  expect_contains(error_of([&] { const Attention attention(spec); }), "value_head_dim is -1");
  spec = small_spec();
  spec.window.left = -2;
  expect_contains(error_of([&] { const Attention attention(spec); }), "window.left is -2");
}

TEST(SpecDefaults, ValuesWithoutColumnsStillGiveScores) {
  for (const ScoresOutput mode :
       {ScoresOutput::kNone, ScoresOutput::kScaled, ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities}) {
    for (const std::int64_t queries : {1, 40}) {
      for (const DataType type : {DataType::kF32, DataType::kBF16}) {
        CaseShape shape;
        shape.spec.type = type;
        shape.spec.num_heads = 2;
        shape.spec.query_len = queries;
        shape.spec.key_len = 37;
        shape.spec.head_dim = 32;
        shape.spec.value_head_dim = 0;
        shape.spec.scores_output = mode;
        expect_all_paths(shape);
      }
    }
  }
}

TEST(Attention, AssignsByMove) {
  CaseShape shape;
  shape.spec = small_spec();
  AttentionCase problem(shape);
  Attention attention(AttentionSpec{});
  attention = Attention(problem.spec());
  EXPECT_EQ(attention.spec().key_len, 5);
  const Attention moved(std::move(attention));
  const AlignedBuffer workspace(moved.workspace_bytes(1));
  const Expected expected(problem.spec(), problem.args());
  problem.poison_outputs();
  moved.run(problem.args(), workspace.data(), Threads::serial());
  const Comparison comparison = expected.compare(problem.args());
  EXPECT_TRUE(comparison.ok()) << comparison.failure;
}

TEST(Semantics, ApplyToRulesWhateverHasThem) {
  AttentionRules rules;
  rules.softcap = 3;
  apply_semantics("torch_mha", true, &rules);
  EXPECT_EQ(rules.causal, Causal::kTopLeft);
  EXPECT_EQ(rules.mask_polarity, MaskPolarity::kTrueHides);
  EXPECT_EQ(rules.softcap, 3) << "the other rules stay";
  AttentionSpec spec = small_spec();
  apply_semantics("flash", true, &spec);
  EXPECT_EQ(spec.causal, Causal::kLastKey);
  EXPECT_EQ(spec.num_heads, 4);
}

}  // namespace
}  // namespace headway::testing
