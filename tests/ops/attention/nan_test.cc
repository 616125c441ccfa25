// NaN and infinity: hidden ones never reach the output, visible ones always do; on every path.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/reference/reference_attention.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Nan : public ::testing::TestWithParam<Path> {
 protected:
  static CaseShape sized(std::int64_t queries, std::int64_t keys) {
    CaseShape shape;
    shape.spec.type = GetParam().type;
    shape.spec.num_heads = 2;
    shape.spec.query_len = queries;
    shape.spec.key_len = keys;
    shape.spec.head_dim = head_width(GetParam(), 16);
    shape.seed = static_cast<std::uint64_t>(queries * 1000 + keys);
    return shape;
  }
  static bool takes(const AttentionCase& problem) { return refusal(GetParam(), problem.spec()).empty(); }

  /// Fills every key and value that some query may not see with poison, for the queries of all heads and batches;
  /// expects the same output as with ordinary numbers there. Only keys hidden from all queries can be held to that.
  static void expect_hidden_keys_are_harmless(const CaseShape& shape, float poison) {
    AttentionCase problem(shape);
    if (!takes(problem)) return;
    const AttentionSpec& spec = problem.spec();
    const AttentionArgs args = problem.args();
    const Expected expected(spec, args);
    std::int64_t poisoned = 0;
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      for (std::int64_t j = 0; j < spec.key_len; ++j) {
        bool hidden = true;
        for (std::int64_t h = 0; h < spec.num_heads; ++h) {
          for (std::int64_t i = 0; i < spec.query_len; ++i) {
            hidden = hidden && reference_bias(spec, args, {b, h, i, j}) == -kInfinity;
          }
        }
        if (!hidden) continue;
        ++poisoned;
        for (std::int64_t h = 0; h < *spec.num_kv_heads; ++h) {
          for (std::int64_t d = 0; d < spec.head_dim; ++d) {
            problem.key.at(b, h, j, d) = poison;
            problem.value.at(b, h, j, d) = poison;
          }
        }
      }
    }
    EXPECT_GT(poisoned, 0) << "nothing to test: " << describe(shape);
    run_path(GetParam(), problem);
    const Comparison comparison = expected.compare(problem.args(), rounds_weights(GetParam()));
    EXPECT_TRUE(comparison.ok()) << comparison.failure << "\n  " << describe(shape);
  }
};

TEST_P(Nan, KeysHiddenFromAllByAMask) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
    for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{1, 9}, {5, 17}, {20, 133}, {49, 49}}) {
      for (const MaskKind kind : {MaskKind::kBool, MaskKind::kAdditive}) {
        CaseShape shape = sized(queries, keys);
        shape.spec.key_mask = kind;
        expect_hidden_keys_are_harmless(shape, poison);
        shape.spec.key_mask = MaskKind::kNone;
        shape.spec.mask = kind;
        shape.mask_dims = {keys};
        expect_hidden_keys_are_harmless(shape, poison);
      }
    }
  }
}

TEST_P(Nan, KeysHiddenByLengthCausalAndWindow) {
  for (const float poison : {std::nanf(""), kInfinity}) {
    for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{1, 9}, {5, 17}, {20, 133}}) {
      CaseShape by_length = sized(queries, keys);
      by_length.spec.key_lengths = true;
      by_length.lengths = {keys / 2};
      expect_hidden_keys_are_harmless(by_length, poison);
      CaseShape by_causal = sized(queries, keys);
      by_causal.spec.causal = Causal::kTopLeft;
      expect_hidden_keys_are_harmless(by_causal, poison);
      CaseShape by_window = sized(queries, keys);
      by_window.spec.causal = Causal::kOffset;
      by_window.offsets = {6};
      by_window.spec.window.left = 2;
      expect_hidden_keys_are_harmless(by_window, poison);
    }
  }
}

// Divided by a sum that is NaN or 0, they were NaN too.
TEST_P(Nan, ProbabilitiesOfHiddenKeysAreZeroInARowOfNan) {
  for (const ScoresOutput mode : {ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities}) {
    for (const int rule : {0, 1, 2, 3, 4}) {
      CaseShape shape = sized(19, 50);
      shape.hidden = 0.6;
      shape.spec.scores_output = mode;
      if (rule == 0) shape.spec.mask = MaskKind::kBool;
      if (rule == 1) shape.spec.mask = MaskKind::kAdditive;
      if (rule == 2) shape.spec.key_mask = MaskKind::kBool;
      if (rule == 3) shape.spec.causal = Causal::kBottomRight;
      if (rule == 4) shape.spec.key_lengths = true, shape.lengths = {31};
      AttentionCase problem(shape);
      if (!takes(problem)) GTEST_SKIP();
      problem.query.at(0, 0, 7, 1) = std::nanf("");
      problem.query.at(0, 1, 9, 2) = kInfinity;
      expect_path(GetParam(), problem);
    }
    // All that the row sees is −inf by its product.
    CaseShape shape = sized(19, 50);
    shape.spec.scores_output = mode;
    shape.spec.mask = MaskKind::kBool;
    shape.mask_dims = {48};
    shape.hidden = 1;
    shape.spec.always_visible_keys = 2;
    AttentionCase problem(shape);
    if (!takes(problem)) GTEST_SKIP();
    for (const std::int64_t j : {48, 49}) problem.key.at(0, 1, j, 1) = 1;
    problem.query.at(0, 1, 9, 1) = -kInfinity;
    expect_path(GetParam(), problem);
  }
}

/// Keys that one query sees and another does not: the rows that do not see it are as if it held a number, the others
/// are NaN; the reference decides which.
TEST_P(Nan, KeysHiddenFromSomeQueriesSpoilOnlyTheOthers) {
  for (const float poison : {std::nanf(""), kInfinity}) {
    for (const bool in_value : {false, true}) {
      for (const MaskKind kind : {MaskKind::kBool, MaskKind::kAdditive}) {
        CaseShape shape = sized(37, 50);
        shape.spec.mask = kind;
        shape.hidden = 0.6;
        shape.spec.scores_output = ScoresOutput::kNone;
        AttentionCase problem(shape);
        if (!takes(problem)) GTEST_SKIP();
        Strided& target = in_value ? problem.value : problem.key;
        for (std::int64_t d = 0; d < 16; ++d) target.at(0, 1, 21, d) = poison;
        expect_path(GetParam(), problem);
      }
    }
  }
}

TEST_P(Nan, CausalRowsBeforeANanKeyAreClean) {
  for (const std::int64_t where : {1, 15, 16, 31, 64, 99}) {
    for (const bool in_value : {false, true}) {
      CaseShape shape = sized(100, 100);
      shape.spec.causal = Causal::kTopLeft;
      AttentionCase problem(shape);
      if (!takes(problem)) GTEST_SKIP();
      Strided& target = in_value ? problem.value : problem.key;
      target.at(0, 0, where, 3) = std::nanf("");
      run_path(GetParam(), problem);
      for (std::int64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(std::isnan(problem.out.at(0, 0, i, 3)), i >= where) << "row " << i << ", NaN at " << where;
        EXPECT_EQ(std::isnan(problem.out.at(0, 0, i, 4)), i >= where && !in_value) << "row " << i;
        EXPECT_FALSE(std::isnan(problem.out.at(0, 1, i, 3))) << "another head, row " << i;
      }
    }
  }
}

TEST_P(Nan, AVisibleNanInAQuerySpoilsItsRowAlone) {
  for (const std::int64_t keys : {1, 8, 17, 130}) {
    AttentionCase problem(sized(20, keys));
    if (!takes(problem)) GTEST_SKIP();
    problem.query.at(0, 1, 13, 15) = std::nanf("");
    run_path(GetParam(), problem);
    each(problem.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_EQ(std::isnan(problem.out.at(b, h, i, d)), h == 1 && i == 13) << "head " << h << " row " << i;
    });
  }
}

TEST_P(Nan, AVisibleNanInAKeyOrMaskSpoilsTheRowsThatSeeIt) {
  for (std::int64_t where = 0; where < 40; where += 3) {
    CaseShape shape = sized(10, 40);
    shape.spec.mask = MaskKind::kAdditive;
    shape.hidden = 0;
    AttentionCase problem(shape);
    if (!takes(problem)) GTEST_SKIP();
    problem.mask_values[static_cast<std::size_t>(4 * 40 + where)] = std::nanf("");
    problem.key.at(0, 1, where, 0) = std::nanf("");
    run_path(GetParam(), problem);
    each(problem.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      EXPECT_EQ(std::isnan(problem.out.at(b, h, i, d)), h == 1 || i == 4) << "head " << h << " row " << i;
    });
  }
}

/// A query full of NaN that sees nothing is an empty row: decided on the masks, not on the scores.
TEST_P(Nan, AnEmptyRowIsZeroWhateverItsQueryHolds) {
  CaseShape shape = sized(6, 20);
  shape.spec.mask = MaskKind::kBool;
  shape.hidden = 0;
  AttentionCase problem(shape);
  if (!takes(problem)) GTEST_SKIP();
  for (std::size_t j = 0; j < 20; ++j) problem.mask_bits[2 * 20 + j] = 0;
  for (std::int64_t d = 0; d < 16; ++d) problem.query.at(0, 0, 2, d) = std::nanf("");
  run_path(GetParam(), problem);
  for (std::int64_t d = 0; d < 16; ++d) EXPECT_EQ(problem.out.at(0, 0, 2, d), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Paths, Nan, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace headway::testing
