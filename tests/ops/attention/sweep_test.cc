// Random problems against the double reference on every path: lengths around vectors and tiles, all widths, head
// counts, masks and their compositions, layouts, windows, alignments, score outputs.
#include <gtest/gtest.h>

#include "ops/simd/target.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

const std::vector<std::int64_t> kLengths = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 65, 97, 128, 133, 197};
const std::vector<std::int64_t> kWidths = {1, 3, 5, 8, 16, 17, 32, 48, 64, 80, 100, 128, 256};
const std::vector<std::int64_t> kHeads = {1, 2, 3, 7, 8, 12, 32};

Dims random_mask_dims(const AttentionSpec& spec, Random& random) {
  const std::int64_t before_tail = spec.key_len - spec.always_visible_keys;
  std::int64_t keys = random.pick({spec.key_len, spec.key_len, before_tail, std::int64_t{1}});
  if (spec.key_len > 3 && random.chance(0.15)) keys = random.between(2, spec.key_len - 1);
  const auto or_one = [&](std::int64_t n) { return random.chance(0.35) ? 1 : n; };
  switch (random.between(1, 4)) {
    case 1:
      return {keys};
    case 2:
      return {or_one(spec.query_len), keys};
    case 3:
      return {or_one(spec.num_heads), or_one(spec.query_len), keys};
    default:
      return {or_one(spec.batch), or_one(spec.num_heads), or_one(spec.query_len), keys};
  }
}

void choose_sizes(AttentionSpec& spec, Random& random) {
  spec.batch = random.pick({1, 1, 2, 3});
  spec.num_heads = random.pick(kHeads);
  if (random.chance(0.4) && spec.num_heads % 2 == 0) spec.num_kv_heads = spec.num_heads / 2;
  if (random.chance(0.15)) spec.num_kv_heads = 1;
  spec.query_len = random.pick(kLengths);
  spec.key_len = random.pick(kLengths);
  if (random.chance(0.3)) spec.key_len = spec.query_len;
  spec.head_dim = random.pick(kWidths);
  if (random.chance(0.3)) spec.value_head_dim = random.pick(kWidths);
  // The reference takes a few ns a flop: keep a problem at some milliseconds.
  const auto cost = [&] {
    return spec.batch * spec.num_heads * spec.query_len * spec.key_len *
           (spec.head_dim + spec.value_head_dim.value_or(0));
  };
  while (cost() > 1'500'000 && spec.batch > 1) --spec.batch;
  while (cost() > 1'500'000 && spec.num_heads > 1) {
    spec.num_heads = spec.num_heads > 3 ? 3 : 1;
    spec.num_kv_heads.reset();
  }
  if (cost() > 4'000'000) spec.query_len = 17;
}

void choose_masks(CaseShape& shape, Random& random) {
  AttentionSpec& spec = shape.spec;
  if (random.chance(0.15)) spec.always_visible_keys = std::min<std::int64_t>(random.between(1, 2), spec.key_len);
  spec.causal = random.pick({Causal::kNone, Causal::kNone, Causal::kTopLeft, Causal::kBottomRight, Causal::kOffset});
  if (random.chance(0.25)) spec.window = {random.pick({-1, 0, 3, 16, 40}), random.pick({-1, 0, 3, 16})};
  const bool own_window = spec.causal == Causal::kNone && (spec.window.left >= 0 || spec.window.right >= 0);
  if (spec.causal == Causal::kOffset || (own_window && random.chance(0.5))) {
    for (std::int64_t b = 0; b < spec.batch; ++b) shape.offsets.push_back(random.between(-20, spec.key_len + 2));
  }
  spec.key_lengths = random.chance(0.25);
  for (std::int64_t b = 0; spec.key_lengths && b < spec.batch; ++b)
    shape.lengths.push_back(random.between(0, spec.key_len));
  shape.integers_are_i32 = random.chance(0.5);
  spec.mask = random.pick({MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive});
  spec.key_mask = random.pick({MaskKind::kNone, MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive});
  spec.mask_polarity = random.pick({MaskPolarity::kTrueAttends, MaskPolarity::kTrueHides});
  if (random.chance(0.1)) spec.empty_row = EmptyRow::kNan;
  shape.hidden = random.pick({0.1, 0.3, 0.7, 0.98});
  if (spec.mask != MaskKind::kNone) shape.mask_dims = random_mask_dims(spec, random);
  if (random.chance(0.5)) shape.key_mask_keys = spec.key_len - spec.always_visible_keys;
}

CaseShape random_shape(std::uint64_t seed) {
  Random random(seed);
  CaseShape shape;
  choose_sizes(shape.spec, random);
  choose_masks(shape, random);
  if (random.chance(0.15)) shape.spec.softcap = random.pick({0.5f, 5.0f, 50.0f});
  if (random.chance(0.2)) shape.spec.scale = random.pick({1.0f, 0.05f, -0.3f, 0.0f});
  if (random.chance(0.35)) shape.spec.scores_output = static_cast<ScoresOutput>(random.between(1, 5));
  shape.layout = kAllLayouts[random.below(std::size(kAllLayouts))];
  shape.seed = seed;
  if (seed % 3 == 0) shape.spec.type = DataType::kBF16;
  if (shape.spec.type == DataType::kBF16 && random.chance(0.5)) shape.mask_type = DataType::kBF16;
  if (shape.spec.type == DataType::kBF16 && random.chance(0.6)) {
    shape.spec.head_dim = (shape.spec.head_dim + 31) / 32 * 32;  // what all paths take
    if (auto& width = shape.spec.value_head_dim) width = (*width + 31) / 32 * 32;
  }
  return shape;
}

/// Shards run side by side under ctest.
class Sweep : public ::testing::TestWithParam<int> {};

TEST_P(Sweep, RandomProblems) {
  int compared = 0;
  for (std::uint64_t n = 0; n < 80; ++n) {
    compared += expect_all_paths(random_shape(1000 * static_cast<std::uint64_t>(GetParam()) + n));
    if (HasFailure()) return;
  }
  // The reference and `tiled` on every target take all 80; a sweep whose paths refuse compares less and must fail.
  EXPECT_GE(compared, 80 * (1 + static_cast<int>(simd_targets().size())));
}

INSTANTIATE_TEST_SUITE_P(Shards, Sweep, ::testing::Range(0, 8));

TEST(SweepPlain, EveryLengthAndWidthWithoutMasks) {
  std::uint64_t seed = 0;
  for (const std::int64_t keys : kLengths) {
    CaseShape shape;
    shape.spec.num_heads = 2;
    shape.spec.query_len = kLengths[(seed * 5) % kLengths.size()];
    shape.spec.key_len = keys;
    shape.spec.head_dim = kWidths[seed % kWidths.size()];
    shape.seed = ++seed;
    expect_all_paths(shape);
    shape.spec.type = DataType::kBF16;
    expect_all_paths(shape);
  }
  for (const std::int64_t d : kWidths) {
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
