// Random problems against the double reference on every path: lengths around vectors and tiles, all widths, head
// counts, masks and their compositions, layouts, windows, alignments, score outputs.
#include <gtest/gtest.h>

#include "ops/simd/target.h"
#include "tests/runtime/sanitizers.h"
#include "tests/support/paths.h"
#include "tests/support/random_attention.h"

namespace headway::testing {
namespace {

/// Shards run side by side under ctest.
class Sweep : public ::testing::TestWithParam<int> {};

TEST_P(Sweep, RandomProblems) {
  constexpr int kCases = sanitized_share(80);
  int compared = 0;
  for (int n = 0; n < kCases; ++n) {
    compared += expect_all_paths(random_shape(static_cast<std::uint64_t>(1000 * GetParam() + n)));
    if (HasFailure()) return;
  }
  // The reference and `tiled` on every target take all; a sweep whose paths refuse compares less and must fail.
  EXPECT_GE(compared, kCases * (1 + static_cast<int>(simd_targets().size())));
}

INSTANTIATE_TEST_SUITE_P(Shards, Sweep, ::testing::Range(0, 8));

TEST(SweepPlain, EveryLengthAndWidthWithoutMasks) {
  std::uint64_t seed = 0;
  for (const std::int64_t keys : kSweptLengths) {
    CaseShape shape;
    shape.spec.num_heads = 2;
    shape.spec.query_len = kSweptLengths[(seed * 5) % kSweptLengths.size()];
    shape.spec.key_len = keys;
    shape.spec.head_dim = kSweptWidths[seed % kSweptWidths.size()];
    shape.seed = ++seed;
    expect_all_paths(shape);
    shape.spec.type = DataType::kBF16;
    expect_all_paths(shape);
  }
  for (const std::int64_t d : kSweptWidths) {
    CaseShape shape;
    shape.spec.query_len = 19;
    shape.spec.key_len = 50;
    shape.spec.head_dim = d;
    shape.seed = ++seed;
    expect_all_paths(shape);
    shape.spec.type = DataType::kBF16;
    expect_all_paths(shape);
  }
}

TEST(SweepPlain, EmptyTensors) {
  for (int which = 0; which < 6; ++which) {
    for (const ScoresOutput mode :
         {ScoresOutput::kNone, ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities}) {
      if (which == 1 && mode == ScoresOutput::kMeanProbabilities) continue;  // a mean over nothing is refused
      CaseShape shape;
      shape.spec.batch = which == 0 ? 0 : 2;
      shape.spec.num_heads = which == 1 ? 0 : 2;
      shape.spec.query_len = which == 2 ? 0 : 5;
      shape.spec.key_len = which == 3 ? 0 : 6;
      shape.spec.head_dim = which == 4 ? 0 : 4;
      if (which == 4) shape.spec.value_head_dim = 3;
      shape.spec.scores_output = mode;
      expect_all_paths(shape);
      shape.spec.type = DataType::kBF16;
      expect_all_paths(shape);
    }
  }
}

/// What the sweep draws must be able to tell right from wrong: rows neither one-hot nor uniform.
TEST(SweepPlain, RandomRowsAreNeitherOneHotNorUniform) {
  for (const std::int64_t d : {3, 8, 64, 256}) {
    for (const std::int64_t keys : {7, 64, 197}) {
      CaseShape shape;
      shape.spec.num_heads = 2;
      shape.spec.query_len = 16;
      shape.spec.key_len = keys;
      shape.spec.head_dim = d;
      AttentionCase problem(shape);
      const double entropy = row_entropy(problem.spec(), problem.args());
      EXPECT_GT(entropy, 0.3) << describe(shape);
      EXPECT_LT(entropy, 0.97) << describe(shape);
    }
  }
}

}  // namespace
}  // namespace headway::testing
