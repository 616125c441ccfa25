// The oracle against answers worked out by hand, and the row interface against the whole.
#include "ops/reference/reference_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/attention_case.h"
#include "tests/support/compare.h"

namespace headway::testing {
namespace {

TEST(Reference, TwoKeysByHand) {
  // q = [1, 2], k = [1, 0] and [0, 1], scale 1: scores 1 and 2; weights 1 / (1 + e) and e / (1 + e).
  CaseShape shape;
  shape.spec.query_len = 1;
  shape.spec.key_len = 2;
  shape.spec.head_dim = 2;
  shape.spec.scale = 1.0f;
  shape.spec.scores_output = ScoresOutput::kProbabilities;
  AttentionCase problem(shape);
  problem.query.at(0, 0, 0, 0) = 1;
  problem.query.at(0, 0, 0, 1) = 2;
  problem.key.fill(0);
  problem.key.at(0, 0, 0, 0) = 1;
  problem.key.at(0, 0, 1, 1) = 1;
  const float values[2][2] = {{10, -1}, {20, 3}};
  for (int j = 0; j < 2; ++j) {
    for (int d = 0; d < 2; ++d) problem.value.at(0, 0, j, d) = values[j][d];
  }
  reference_attention(problem.spec(), problem.args());
  const double p = std::exp(1.0) / (1 + std::exp(1.0));
  EXPECT_FLOAT_EQ(problem.scores.at(0, 0, 0, 0), static_cast<float>(1 - p));
  EXPECT_FLOAT_EQ(problem.scores.at(0, 0, 0, 1), static_cast<float>(p));
  EXPECT_FLOAT_EQ(problem.out.at(0, 0, 0, 0), static_cast<float>(10 * (1 - p) + 20 * p));
  EXPECT_FLOAT_EQ(problem.out.at(0, 0, 0, 1), static_cast<float>(-(1 - p) + 3 * p));
}

TEST(Reference, ScoresOfEachMode) {
  // One query of 1, keys 1, 2, 3; the last one is hidden.
  for (const ScoresOutput mode : {ScoresOutput::kScaled, ScoresOutput::kSoftcapped, ScoresOutput::kBiased,
                                  ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities}) {
    CaseShape shape;
    shape.spec.query_len = 1;
    shape.spec.key_len = 3;
    shape.spec.head_dim = 1;
    shape.spec.scale = 2.0f;
    shape.spec.softcap = 3.0f;
    shape.spec.mask = MaskKind::kAdditive;
    shape.spec.scores_output = mode;
    AttentionCase problem(shape);
    problem.query.fill(1);
    for (std::int64_t j = 0; j < 3; ++j) problem.key.at(0, 0, j, 0) = static_cast<float>(j + 1);
    problem.mask_values = {0.5f, 0.0f, -INFINITY};
    reference_attention(problem.spec(), problem.args());
    const auto capped = [](double s) { return 3 * std::tanh(s / 3); };
    const double s0 = capped(2) + 0.5;
    const double s1 = capped(4);
    const double p0 = std::exp(s0) / (std::exp(s0) + std::exp(s1));
    const double expected[5][3] = {
        {2, 4, 6}, {capped(2), capped(4), capped(6)}, {s0, s1, -INFINITY}, {p0, 1 - p0, 0}, {p0, 1 - p0, 0}};
    const float* scores = ConstTensorView(problem.args().scores).as<float>();
    for (int j = 0; j < 3; ++j) {
      EXPECT_FLOAT_EQ(scores[j], static_cast<float>(expected[static_cast<int>(mode) - 1][j])) << static_cast<int>(mode);
    }
  }
}

TEST(Reference, RowsOfOneHeadAreThoseOfTheWhole) {
  CaseShape shape;
  shape.spec.batch = 2;
  shape.spec.num_heads = 4;
  shape.spec.num_kv_heads = 2;
  shape.spec.query_len = 9;
  shape.spec.key_len = 14;
  shape.spec.head_dim = 6;
  shape.spec.value_head_dim = 5;
  shape.spec.mask = MaskKind::kBool;
  shape.spec.causal = Causal::kBottomRight;
  shape.spec.scores_output = ScoresOutput::kBiased;
  AttentionCase whole(shape);
  AttentionCase rows(shape);
  reference_attention(whole.spec(), whole.args());
  rows.poison_outputs();
  reference_attention_rows(rows.spec(), rows.args(), {1, 2, 3, 7});
  each(whole.out.view().dims, [&](auto b, auto h, auto i, auto d) {
    if (b == 1 && h == 2 && i >= 3 && i < 7) {
      EXPECT_EQ(rows.out.at(b, h, i, d), whole.out.at(b, h, i, d));
    } else {
      EXPECT_TRUE(std::isnan(rows.out.at(b, h, i, d)));
    }
  });
}

/// bf16 inputs are taken as the numbers they are, and what is stored is rounded once.
TEST(Reference, Bf16IsRoundedOnceAtTheEnd) {
  CaseShape shape;
  shape.spec.type = DataType::kBF16;
  shape.spec.num_heads = 2;
  shape.spec.query_len = 7;
  shape.spec.key_len = 30;
  shape.spec.head_dim = 5;
  shape.spec.mask = MaskKind::kAdditive;
  shape.mask_type = DataType::kBF16;
  shape.layout = Layout::kTransposed;
  AttentionCase problem(shape);
  reference_attention(problem.spec(), problem.args());
  const std::vector<double> exact = Expected(problem.spec(), problem.args()).out();
  std::size_t index = 0;
  each(problem.out.view().dims, [&](auto b, auto h, auto i, auto d) {
    EXPECT_EQ(problem.out.at(b, h, i, d), widen(convert<BFloat16>(exact[index++])));
  });
}

/// Wider than what is summed in one go.
TEST(Reference, ValuesOfAnyWidth) {
  CaseShape shape;
  shape.spec.query_len = 2;
  shape.spec.key_len = 3;
  shape.spec.head_dim = 2;
  shape.spec.value_head_dim = 2500;
  AttentionCase problem(shape);
  problem.query.fill(0);
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t d = 0; d < 2500; ++d) problem.value.at(0, 0, j, d) = static_cast<float>(j * d);
  }
  reference_attention(problem.spec(), problem.args());
  for (std::int64_t d = 0; d < 2500; ++d) EXPECT_FLOAT_EQ(problem.out.at(0, 0, 1, d), static_cast<float>(d));
}

TEST(Reference, EmptyRowsByRule) {
  for (const EmptyRow rule : {EmptyRow::kZero, EmptyRow::kNan}) {
    CaseShape shape;
    shape.spec.query_len = 2;
    shape.spec.key_len = 3;
    shape.spec.head_dim = 2;
    shape.spec.causal = Causal::kOffset;
    shape.offsets = {-1};
    shape.spec.empty_row = rule;
    AttentionCase problem(shape);
    EXPECT_EQ(reference_attention_rows(problem.spec(), problem.args(), {0, 0, 0, 2}), 1);
    EXPECT_EQ(std::isnan(problem.out.at(0, 0, 0, 0)), rule == EmptyRow::kNan);
    EXPECT_EQ(problem.out.at(0, 0, 1, 0), problem.value.at(0, 0, 0, 0));
    EXPECT_EQ(problem.out.at(0, 0, 0, 0) == 0.0f, rule == EmptyRow::kZero);
  }
}

}  // namespace
}  // namespace headway::testing
