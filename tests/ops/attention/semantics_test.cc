// The library's reading of the masks (visibility.h, bias.h) against the reference's own, pair by pair; and the flop
// count against pairs that are counted one by one.
#include <gtest/gtest.h>

#include <limits>

#include "ops/attention/bias.h"
#include "ops/attention/visibility.h"
#include "ops/reference/reference_attention.h"
#include "tests/support/attention_case.h"

namespace headway::testing {
namespace {

constexpr float kHiddenMask = -std::numeric_limits<float>::infinity();

CaseShape random_masks(std::uint64_t seed) {
  Random random(seed);
  CaseShape shape;
  AttentionSpec& spec = shape.spec;
  spec.batch = random.between(1, 3);
  spec.num_heads = random.between(1, 3);
  spec.query_len = random.between(1, 20);
  spec.key_len = random.between(1, 40);
  spec.head_dim = 1;
  spec.always_visible_keys = random.chance(0.4) ? random.between(0, std::min<std::int64_t>(spec.key_len, 3)) : 0;
  spec.causal = static_cast<Causal>(random.below(5));
  if (random.chance(0.5)) spec.window = {random.between(-1, 12), random.between(-1, 12)};
  const bool own_window = spec.causal == Causal::kNone && (spec.window.left >= 0 || spec.window.right >= 0);
  spec.key_lengths = random.chance(0.5);
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    if (spec.key_lengths) shape.lengths.push_back(random.between(0, spec.key_len));
    if (spec.causal == Causal::kOffset || own_window) shape.offsets.push_back(random.between(-45, 45));
  }
  shape.integers_are_i32 = random.chance(0.5);
  spec.mask = static_cast<MaskKind>(random.below(3));
  spec.key_mask = static_cast<MaskKind>(random.below(3));
  spec.mask_polarity = static_cast<MaskPolarity>(random.below(2));
  const auto or_one = [&](std::int64_t n) { return random.chance(0.5) ? 1 : n; };
  const std::int64_t before_tail = spec.key_len - spec.always_visible_keys;
  std::int64_t keys = random.pick({spec.key_len, before_tail, std::int64_t{1}});
  if (spec.key_len > 3 && random.chance(0.3)) keys = random.between(2, spec.key_len - 1);
  shape.mask_dims = {or_one(spec.batch), or_one(spec.num_heads), or_one(spec.query_len), keys};
  if (random.chance(0.5)) shape.mask_dims = {or_one(spec.query_len), keys};
  if (random.chance(0.5)) shape.key_mask_keys = before_tail;
  if (seed % 4 == 0) shape.mask_type = DataType::kBF16;
  shape.seed = seed;
  return shape;
}

TEST(Visibility, AgreesWithTheReferenceOnEveryPair) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    AttentionCase problem(random_masks(seed));
    const AttentionSpec& spec = problem.spec();
    const AttentionArgs args = problem.args();
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      const Visibility visibility(spec, args, b);
      for (std::int64_t i = 0; i < spec.query_len; ++i) {
        const KeyRange row = visibility.row(i);
        for (std::int64_t j = 0; j < spec.key_len; ++j) {
          const bool visible = (j >= row.begin && j < row.end) || j >= visibility.tail_begin();
          ASSERT_EQ(visible, reference_position_visible(spec, args, b, i, j))
              << "b " << b << " i " << i << " j " << j << "\n  " << describe(problem.shape());
        }
      }
    }
  }
}

TEST(Visibility, BlocksAreHullAndIntersectionOfTheirRows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    AttentionCase problem(random_masks(seed));
    const std::int64_t queries = problem.spec().query_len;
    const Visibility visibility(problem.spec(), problem.args(), 0);
    for (std::int64_t begin = 0; begin < queries; begin += 3) {
      const std::int64_t end = std::min(begin + 5, queries);
      const KeyRange any = visibility.any(begin, end);
      const KeyRange all = visibility.all(begin, end);
      for (std::int64_t j = 0; j < problem.spec().key_len; ++j) {
        std::int64_t seen = 0;
        for (std::int64_t i = begin; i < end; ++i) seen += j >= visibility.row(i).begin && j < visibility.row(i).end;
        ASSERT_TRUE(seen == 0 || (j >= any.begin && j < any.end)) << describe(problem.shape());
        ASSERT_EQ(seen == end - begin, j >= all.begin && j < all.end) << describe(problem.shape());
      }
    }
  }
}

/// Windows and offsets at the ends of their types must not overflow.
TEST(Visibility, SurvivesExtremeNumbers) {
  constexpr std::int64_t kFar = std::int64_t{1} << 59;
  for (const std::int64_t offset : {-kFar, std::int64_t{-3}, std::int64_t{5}, kFar}) {
    for (const std::int64_t side : {std::int64_t{0}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
      CaseShape shape;
      shape.spec.query_len = 4;
      shape.spec.key_len = 9;
      shape.spec.head_dim = 1;
      shape.spec.window = {side, side};
      shape.offsets = {offset};
      AttentionCase problem(shape);
      const Visibility visibility(problem.spec(), problem.args(), 0);
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 9; ++j) {
          const KeyRange row = visibility.row(i);
          EXPECT_EQ(j >= row.begin && j < row.end, reference_position_visible(problem.spec(), problem.args(), 0, i, j))
              << offset << " " << side;
        }
      }
    }
  }
}

TEST(BiasSource, AgreesWithTheReferenceOnEveryTile) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CaseShape shape = random_masks(seed);
    shape.spec.causal = Causal::kNone;  // integer rules are not the bias's business
    shape.spec.window = {};
    shape.spec.key_lengths = false;
    shape.lengths.clear();
    shape.offsets.clear();
    AttentionCase problem(shape);
    const AttentionSpec& spec = problem.spec();
    const AttentionArgs args = problem.args();
    const BiasSource source(spec, args);
    EXPECT_EQ(source.any(), spec.mask != MaskKind::kNone || spec.key_mask != MaskKind::kNone);
    Random random(seed);
    const std::int64_t query = random.below(spec.query_len);
    const std::int64_t key = random.below(spec.key_len);
    const std::int64_t rows = random.between(1, spec.query_len - query);
    const std::int64_t keys = random.between(1, spec.key_len - key);
    const std::int64_t ld = keys + 3;
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      for (std::int64_t h = 0; h < spec.num_heads; ++h) {
        std::vector<float> tile(static_cast<std::size_t>(rows * ld), 77.0f);
        source.fill(b, h, query, rows, key, keys, tile.data(), ld);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < ld; ++c) {
            const float expected = c < keys ? reference_bias(spec, args, {b, h, query + r, key + c}) : 77.0f;
            ASSERT_EQ(tile[static_cast<std::size_t>(r * ld + c)], expected)
                << "row " << r << " key " << key + c << "\n  " << describe(shape);
          }
        }
      }
    }
  }
}

TEST(BiasSource, SameForAllQueriesLooksAtTheQueryAxis) {
  CaseShape shape;
  shape.spec.query_len = 5;
  shape.spec.key_len = 7;
  shape.spec.head_dim = 1;
  const auto same = [&](MaskKind mask, MaskKind key_mask, const Dims& dims) {
    shape.spec.mask = mask;
    shape.spec.key_mask = key_mask;
    shape.mask_dims = dims;
    AttentionCase problem(shape);
    return BiasSource(problem.spec(), problem.args()).same_for_all_queries();
  };
  EXPECT_TRUE(same(MaskKind::kNone, MaskKind::kNone, {}));
  EXPECT_TRUE(same(MaskKind::kNone, MaskKind::kBool, {}));
  EXPECT_TRUE(same(MaskKind::kBool, MaskKind::kBool, {1, 7}));
  EXPECT_TRUE(same(MaskKind::kAdditive, MaskKind::kNone, {7}));
  EXPECT_FALSE(same(MaskKind::kAdditive, MaskKind::kNone, {5, 7}));
  EXPECT_FALSE(same(MaskKind::kBool, MaskKind::kNone, {1, 1, 5, 1}));
}

/// A mask with a stride between its keys, as a transposed or sliced one has.
TEST(BiasSource, ReadsMasksOfAnyStride) {
  AttentionSpec spec;
  spec.query_len = 6;
  spec.key_len = 10;
  spec.head_dim = 1;
  spec.mask = MaskKind::kAdditive;
  std::vector<float> values(60);
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = n % 7 == 0 ? kHiddenMask : static_cast<float>(n);
  AttentionArgs args;
  args.mask = view_of(static_cast<const float*>(values.data()), Dims{10, 6}).permuted({1, 0});
  std::vector<float> tile(60);
  BiasSource(spec, args).fill(0, 0, 0, 6, 0, 10, tile.data(), 10);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 10; ++j) EXPECT_EQ(tile[i * 10 + j], values[j * 6 + i]);
  }
}

TEST(NominalFlops, CountWhatIsVisible) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CaseShape shape = random_masks(seed);
    shape.spec.key_lengths = false;
    shape.lengths.clear();
    if (shape.spec.causal == Causal::kOffset) shape.spec.causal = Causal::kTopLeft;
    shape.offsets.clear();
    shape.spec.head_dim = 5;
    shape.spec.value_head_dim = 3;
    AttentionCase problem(shape);
    const AttentionSpec& spec = problem.spec();
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < spec.query_len; ++i) {
      for (std::int64_t j = 0; j < spec.key_len; ++j)
        pairs += reference_position_visible(spec, problem.args(), 0, i, j);
    }
    EXPECT_EQ(nominal_attention_flops(shape.spec), 2 * spec.batch * spec.num_heads * 8 * pairs) << describe(shape);
  }
}

/// E = 768, S = 512: the matrix work does not depend on the number of heads.
TEST(NominalFlops, DoNotDependOnTheHeadCount) {
  for (const std::int64_t heads : {1, 12, 96}) {
    AttentionSpec spec;
    spec.num_heads = heads;
    spec.query_len = spec.key_len = 512;
    spec.head_dim = 768 / heads;
    EXPECT_EQ(nominal_attention_flops(spec), 4LL * 512 * 512 * 768);
  }
}

}  // namespace
}  // namespace headway::testing
