// What must hold whatever the numbers are: rows sum to 1, heads are independent, prefixes, shifts, shared heads.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/paths.h"

namespace headway::testing {
namespace {

class Properties : public ::testing::TestWithParam<Path> {
 protected:
  /// Of scores, which are f32 whatever the type.
  static constexpr double kClose = 5e-6;
  /// Of outputs around 1: in bf16 they are rounded, and on some paths their weights.
  static double close() { return GetParam().type == DataType::kBF16 ? 2.1 / 256 : kClose; }

  /// Runs, or says that this path does not take the spec.
  static bool run(AttentionCase& problem) {
    if (!refusal(GetParam(), problem.spec()).empty()) return false;
    run_path(GetParam(), problem);
    return true;
  }
  static void expect_everywhere(AttentionCase& problem, double value) {
    each(problem.out.view().dims,
         [&](auto b, auto h, auto i, auto d) { EXPECT_NEAR(problem.out.at(b, h, i, d), value, close()); });
  }
  static CaseShape sized(std::int64_t heads, std::int64_t query_len, std::int64_t key_len, std::int64_t head_dim) {
    CaseShape shape;
    shape.spec.type = GetParam().type;
    shape.spec.num_heads = heads;
    shape.spec.query_len = query_len;
    shape.spec.key_len = key_len;
    shape.spec.head_dim = head_width(GetParam(), head_dim);
    shape.seed = static_cast<std::uint64_t>(heads * 1000 + key_len);
    return shape;
  }
};

TEST_P(Properties, ProbabilitiesSumToOne) {
  for (const std::int64_t keys : {1, 7, 16, 49, 133, 300}) {
    CaseShape shape = sized(3, 17, keys, 16);
    shape.spec.causal = Causal::kBottomRight;
    shape.spec.scores_output = ScoresOutput::kProbabilities;
    AttentionCase problem(shape);
    if (!run(problem)) GTEST_SKIP();
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t i = 0; i < 17; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) sum += static_cast<double>(problem.scores.at(0, h, i, j));
        EXPECT_NEAR(sum, i + keys - 17 < 0 ? 0.0 : 1.0, kClose) << keys << " keys, row " << i;
      }
    }
  }
}

/// Values of 1 give 1 in every column, whatever the weights: the sum that divides is the sum of what was added.
TEST_P(Properties, ValuesOfOneComeBack) {
  for (const std::int64_t keys : {1, 15, 17, 200, 1025}) {
    AttentionCase problem(sized(2, 9, keys, 32));
    problem.value.fill(1);
    if (!run(problem)) GTEST_SKIP();
    expect_everywhere(problem, 1.0);
  }
}

TEST_P(Properties, PermutedHeadsPermuteTheOutput) {
  for (const std::int64_t heads : {2, 3, 7, 8, 12, 32}) {
    AttentionCase plain(sized(heads, 11, 21, 8));
    AttentionCase turned(sized(heads, 11, 21, 8));
    const auto source = [&](std::int64_t h) { return (h + 1) % heads; };
    for (auto [to, from] :
         {std::pair{&turned.query, &plain.query}, {&turned.key, &plain.key}, {&turned.value, &plain.value}}) {
      each(to->view().dims, [&, to = to, from = from](auto b, auto h, auto i, auto d) {
        to->at(b, h, i, d) = from->at(b, source(h), i, d);
      });
    }
    if (!run(plain) || !run(turned)) GTEST_SKIP();
    each(plain.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_EQ(turned.out.at(b, h, i, d), plain.out.at(b, source(h), i, d)) << heads << " heads";
    });
  }
}

TEST_P(Properties, AConstantAddedToARowChangesNothing) {
  for (const float shift : {-3.0f, 40.0f, 1000.0f}) {
    CaseShape shape = sized(2, 20, 50, 16);
    shape.spec.mask = MaskKind::kAdditive;
    shape.hidden = 0.2;
    AttentionCase plain(shape);
    AttentionCase shifted(shape);
    for (std::size_t n = 0; n + 1 < shifted.mask_values.size(); ++n) shifted.mask_values[n] += shift;
    if (!run(plain) || !run(shifted)) GTEST_SKIP();
    // The shift itself is rounded into every score.
    const double within = close() * (1 + std::abs(static_cast<double>(shift)) / 8);
    each(plain.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_NEAR(shifted.out.at(b, h, i, d), plain.out.at(b, h, i, d), within) << "shift " << shift;
    });
  }
}

TEST_P(Properties, CausalOverAPrefixIsThePrefix) {
  CaseShape shape = sized(2, 150, 150, 16);
  shape.spec.causal = Causal::kTopLeft;
  AttentionCase whole(shape);
  if (!run(whole)) GTEST_SKIP();
  for (const std::int64_t length : {1, 2, 16, 17, 48, 100, 149}) {
    CaseShape shorter = shape;
    shorter.spec.query_len = length;
    shorter.spec.key_len = length;
    AttentionCase prefix(shorter);
    for (auto [to, from] :
         {std::pair{&prefix.query, &whole.query}, {&prefix.key, &whole.key}, {&prefix.value, &whole.value}}) {
      each(to->view().dims,
           [to = to, from = from](auto b, auto h, auto i, auto d) { to->at(b, h, i, d) = from->at(b, h, i, d); });
    }
    ASSERT_TRUE(run(prefix));
    each(prefix.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_NEAR(prefix.out.at(b, h, i, d), whole.out.at(b, h, i, d), close()) << "length " << length;
    });
  }
}

TEST_P(Properties, SharedKeyHeadsEqualRepeatedOnes) {
  for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{4, 2}, {12, 3}, {8, 1}, {32, 8}}) {
    CaseShape shape = sized(heads, 10, 33, 16);
    AttentionCase repeated(shape);
    shape.spec.num_kv_heads = kv_heads;
    AttentionCase shared(shape);
    const std::int64_t group = heads / kv_heads;
    each(repeated.key.view().dims, [&](auto b, auto h, auto j, auto d) {
      repeated.key.at(b, h, j, d) = shared.key.at(b, h / group, j, d);
      repeated.value.at(b, h, j, d) = shared.value.at(b, h / group, j, d);
    });
    each(repeated.query.view().dims,
         [&](auto b, auto h, auto i, auto d) { repeated.query.at(b, h, i, d) = shared.query.at(b, h, i, d); });
    if (!run(shared) || !run(repeated)) GTEST_SKIP();
    each(shared.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_NEAR(shared.out.at(b, h, i, d), repeated.out.at(b, h, i, d), close()) << heads << " over " << kv_heads;
    });
  }
}

TEST_P(Properties, KeysInAnotherOrderGiveTheSame) {
  AttentionCase plain(sized(2, 8, 65, 16));
  AttentionCase turned(sized(2, 8, 65, 16));
  each(plain.key.view().dims, [&](auto b, auto h, auto j, auto d) {
    turned.key.at(b, h, 64 - j, d) = plain.key.at(b, h, j, d);
    turned.value.at(b, h, 64 - j, d) = plain.value.at(b, h, j, d);
  });
  if (!run(plain) || !run(turned)) GTEST_SKIP();
  each(plain.out.view().dims, [&](auto b, auto h, auto i, auto d) {
    EXPECT_NEAR(turned.out.at(b, h, i, d), plain.out.at(b, h, i, d), close());
  });
}

/// The query is scaled before the product: its square would overflow.
TEST_P(Properties, LargeQueriesDoNotOverflow) {
  CaseShape shape = sized(1, 5, 19, 64);
  AttentionCase problem(shape);
  problem.query.fill(4e18f);
  problem.key.fill(4e18f);
  problem.value.fill(2);
  if (!run(problem)) GTEST_SKIP();
  expect_everywhere(problem, 2.0);
}

/// Neither does a sum of values before it is divided.
TEST_P(Properties, LargeValuesComeBack) {
  for (const Causal causal : {Causal::kNone, Causal::kTopLeft}) {
    CaseShape shape = sized(1, 20, 40, 32);
    shape.spec.causal = causal;
    AttentionCase problem(shape);
    problem.value.fill(3e38f);
    if (!run(problem)) GTEST_SKIP();
    each(problem.out.view().dims,
         [&](auto b, auto h, auto i, auto d) { EXPECT_NEAR(problem.out.at(b, h, i, d) / 3e38, 1.0, close()); });
  }
}

/// Scores so large that the rounding of their maximum alone is beyond any exponent.
TEST_P(Properties, TheLargestScoreHasAWeightOfOne) {
  for (const float scale : {0.3f, 0.17677669f, -0.17677669f}) {
    // Of eight roundings some go up and some go down.
    for (int eighths = 8; eighths < 16; ++eighths) {
      CaseShape shape = sized(1, 3, 5, 32);
      shape.spec.scale = scale;
      AttentionCase problem(shape);
      problem.query.fill(static_cast<float>(eighths) * 0.125f * 0x1p28f);
      problem.key.fill(0x1p40f);
      problem.value.fill(2);
      if (!run(problem)) GTEST_SKIP();
      expect_everywhere(problem, 2.0);
    }
  }
}

/// A scale of 0 makes all scores 0, however large the queries are.
TEST_P(Properties, AScaleOfZeroWeighsAllAlike) {
  CaseShape shape = sized(1, 3, 2, 32);
  shape.spec.scale = 0.0f;
  AttentionCase problem(shape);
  problem.query.fill(1e20f);
  problem.key.fill(1e20f);
  each(problem.value.view().dims, [&](auto b, auto h, auto j, auto d) { problem.value.at(b, h, j, d) = j; });
  if (!run(problem)) GTEST_SKIP();
  expect_everywhere(problem, 0.5);
}

/// A query that is as large as bf16 can be is not made larger.
TEST_P(Properties, TheLargestQueryStaysFinite) {
  for (const float scale : {1.0f, 1.1f}) {
    CaseShape shape = sized(1, 3, 2, 32);
    shape.spec.scale = scale;
    AttentionCase problem(shape);
    problem.query.fill(scale == 1.0f ? 3e38f : 2e38f);
    problem.key.fill(0);
    problem.value.fill(1.5f);
    if (!run(problem)) GTEST_SKIP();
    expect_everywhere(problem, 1.5);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, Properties, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace headway::testing
