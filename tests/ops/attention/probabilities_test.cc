// Tiles of probabilities from a run's log-sum-exp, against the double reference and against the scores output of the
// same run.
#include "headway/attention_probabilities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "headway/numerical_bound.h"
#include "ops/attention/spec.h"
#include "ops/reference/reference_attention.h"
#include "tests/runtime/sanitizers.h"
#include "tests/support/paths.h"
#include "tests/support/random_attention.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr float kPoison = -77;

/// A problem that has been run on one path, with the exact probabilities of all its rows.
struct Problem {
  Problem(const CaseShape& shape, const Path& path) : data(shape), args(data.args()) {
    const AttentionSpec& spec = data.spec();
    args.scores = {};
    args.log_sum_exp = log_sum_exp();
    AttentionSpec plain = spec;
    plain.scores_output = ScoresOutput::kNone;
    run_path(path, plain, args, Threads::openmp(1));
    AttentionSpec asked = spec;
    asked.scores_output = ScoresOutput::kProbabilities;
    AttentionArgs reference = args;
    reference.log_sum_exp = {};
    exact.resize(static_cast<std::size_t>(element_count(score_dims()) + 1));
    reference.scores = view_of(exact.data(), score_dims());
    std::vector<double> ignored(static_cast<std::size_t>(args.out.count() + 1));
    reference.out = view_of(ignored.data(), args.out.dims);
    reference_attention(asked, reference);
  }
  Dims score_dims() const {
    const AttentionSpec& s = data.spec();
    return {s.batch, s.num_heads, s.query_len, s.key_len};
  }
  TensorView log_sum_exp() {
    const AttentionSpec& s = data.spec();
    sums.assign(static_cast<std::size_t>(s.batch * s.num_heads * s.query_len + 1), kPoison);
    return view_of(sums.data(), Dims{s.batch, s.num_heads, s.query_len});
  }
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const Dims d = score_dims();
    return exact[static_cast<std::size_t>(((b * d[1] + h) * d[2] + i) * d[3] + j)];
  }

  AttentionCase data;
  AttentionArgs args;
  std::vector<float> sums;
  std::vector<double> exact;
};

/// Σ|scale·q·k| and |bias| at most: what bounds an exponent's error, over all keys that a row sees.
double magnitude(const Problem& p, const ProbabilityTile& tile, std::int64_t i) {
  const AttentionSpec& s = p.data.spec();
  double of_products = 0, of_biases = 0;
  for (std::int64_t j = 0; j < s.key_len; ++j) {
    const auto bias = static_cast<double>(reference_bias(s, p.args, {tile.batch, tile.head, i, j}));
    if (std::isinf(bias)) continue;
    const std::int64_t kv = tile.head / (s.num_heads / *s.num_kv_heads);
    double sum = 0;
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
      const double q = read_element(p.args.query, offset_of(p.args.query.strides, tile.batch, tile.head, i, d));
      const double k = read_element(p.args.key, offset_of(p.args.key.strides, tile.batch, kv, j, d));
      sum += std::abs(static_cast<double>(*s.scale) * q * k);
    }
    of_products = std::max(of_products, sum);
    of_biases = std::max(of_biases, std::abs(bias));
  }
  return of_products + of_biases;
}

/// Computes the tile into the middle of a larger buffer and holds every element against the exact one.
void expect_tile(const Problem& p, const ProbabilityTile& tile, bool reversed, double looser) {
  const std::int64_t rows = tile.query_end - tile.query_begin, keys = tile.key_end - tile.key_begin;
  const std::int64_t stride = keys + 3;
  std::vector<float> buffer(static_cast<std::size_t>(rows * stride + 2), kPoison);
  float* const first = buffer.data() + 1 + (reversed ? std::max<std::int64_t>(keys - 1, 0) : 0);
  const TensorView to(reinterpret_cast<std::byte*>(first), DataType::kF32, {rows, keys}, {stride, reversed ? -1 : 1});
  attention_probabilities(p.data.spec(), p.args, tile, to);
  EXPECT_EQ(buffer.front(), kPoison);
  for (std::int64_t i = 0; i < rows; ++i) {
    const double m = magnitude(p, tile, tile.query_begin + i);
    for (std::int64_t j = 0; j < keys; ++j) {
      const double got = static_cast<double>(first[i * stride + (reversed ? -j : j)]);
      const double exact = p.at(tile.batch, tile.head, tile.query_begin + i, tile.key_begin + j);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(got)) << describe(p.data.shape()) << ": " << got;
        continue;
      }
      // A hidden key has exactly 0.
      const double bound =
          exact == 0 ? 0 : numerical_bound::of_out(exact, m) + numerical_bound::kUnderflow + looser * exact;
      ASSERT_NEAR(got, exact, bound) << describe(p.data.shape()) << " row " << tile.query_begin + i << " key "
                                     << tile.key_begin + j;
    }
    for (std::int64_t j = keys; j < stride; ++j)
      ASSERT_EQ(buffer[static_cast<std::size_t>(1 + i * stride + j)], kPoison);
  }
}

/// All kinds of masks and their compositions, grouped heads, windows, layouts, both types: whole heads and tiles.
TEST(Probabilities, TilesOfRandomProblemsAreExact) {
  constexpr int kCases = sanitized_share(160);
  int compared = 0;
  for (int n = 0; n < kCases; ++n) {
    CaseShape shape = random_shape(static_cast<std::uint64_t>(70000 + n), kSweptCost / 8);
    shape.spec.scores_output = ScoresOutput::kNone;
    Path path;
    path.type = shape.spec.type;
    const std::vector<std::string> names = attention_implementations();
    path.implementation = names[static_cast<std::size_t>(n) % names.size()];
    if (!refusal(path, complete_spec(shape.spec)).empty()) path.implementation = "tiled";
    const Problem p(shape, path);
    const AttentionSpec& s = p.data.spec();
    Random random(static_cast<std::uint64_t>(n));
    const double looser = rounds_weights(path) ? 1e-4 : 0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.num_heads && s.query_len > 0; ++h) {
        expect_tile(p, {b, h, 0, s.query_len, 0, s.key_len}, n % 4 == 1, looser);
        const std::int64_t i = random.between(0, s.query_len - 1), j = random.between(0, s.key_len);
        expect_tile(p, {b, h, i, random.between(i, s.query_len), j, random.between(j, s.key_len)}, n % 4 == 2, looser);
        if (HasFailure()) return;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, kCases / 2);
}

/// Keys that integers hide may hold anything, and a NaN that a mask hides must not show; an empty row is told from
/// one whose scores are all −inf by the mask alone.
TEST(Probabilities, HiddenKeysAndEmptyRows) {
  CaseShape shape;
  shape.spec.query_len = 4;
  shape.spec.key_len = 9;
  shape.spec.head_dim = 8;
  shape.spec.mask = MaskKind::kAdditive;
  shape.spec.causal = Causal::kBottomRight;
  shape.hidden = 0;
  for (const EmptyRow empty : {EmptyRow::kZero, EmptyRow::kNan}) {
    shape.spec.empty_row = empty;
    AttentionCase problem(shape);
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < 9; ++j) problem.mask_values[static_cast<std::size_t>(9 + j)] = -infinity;  // row 1
    for (std::int64_t i = 0; i < 4; ++i) problem.mask_values[static_cast<std::size_t>(9 * i + 2)] = -infinity;
    problem.key.at(0, 0, 2, 0) = nan;  // hidden by the mask
    problem.key.at(0, 0, 8, 0) = nan;  // hidden from all but the last row
    for (std::int64_t d = 0; d < 8; ++d) problem.query.at(0, 0, 2, d) = 0;
    problem.query.at(0, 0, 2, 0) = infinity;
    for (std::int64_t j = 0; j < 8; ++j) problem.key.at(0, 0, j, 0) = j == 2 ? nan : -1.0f;
    AttentionArgs args = problem.args();
    std::vector<float> sums(4, kPoison), probs(36, kPoison);
    args.log_sum_exp = view_of(sums.data(), Dims{1, 1, 4});
    run_path({"tiled", "", DataType::kF32}, problem.spec(), args, Threads::openmp(1));
    attention_probabilities(problem.spec(), args, {0, 0, 0, 4, 0, 9}, view_of(probs.data(), Dims{4, 9}));
    const auto p = [&](int i, int j) { return probs[static_cast<std::size_t>(9 * i + j)]; };
    EXPECT_TRUE(std::isfinite(sums[0]));
    EXPECT_EQ(sums[1], -infinity);
    EXPECT_EQ(sums[2], -infinity);
    EXPECT_TRUE(std::isnan(sums[3]));
    float sum = 0;
    for (int j = 0; j < 9; ++j) {
      sum += p(0, j);
      EXPECT_EQ(p(0, j) == 0, j == 2 || j > 5) << j;
      if (empty == EmptyRow::kZero) {
        EXPECT_EQ(p(1, j), 0) << j;
      } else {
        EXPECT_TRUE(std::isnan(p(1, j))) << j;
      }
      EXPECT_EQ(std::isnan(p(2, j)), j != 2 && j < 8) << j;  // visible, but every score is −inf
      EXPECT_EQ(std::isnan(p(3, j)), j != 2) << j;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

void expect_refused(const std::vector<std::string>& parts, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "accepted; expected a message with " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Probabilities, RefusalsNameTheArgumentAndBothNumbers) {
  CaseShape shape;
  shape.spec.num_heads = 2;
  shape.spec.query_len = 5;
  shape.spec.key_len = 7;
  shape.spec.head_dim = 4;
  AttentionCase problem(shape);
  std::vector<float> sums(10), probs(35, kPoison);
  AttentionArgs good = problem.args();
  good.log_sum_exp = view_of(sums.data(), Dims{1, 2, 5});
  const TensorView to = view_of(probs.data(), Dims{5, 7});
  const auto call = [&](const AttentionArgs& args, const ProbabilityTile& tile, const TensorView& view) {
    return [&problem, args, tile, view] { attention_probabilities(problem.spec(), args, tile, view); };
  };
  const ProbabilityTile whole{0, 1, 0, 5, 0, 7};
  AttentionArgs args = good;
  args.log_sum_exp = {};
  expect_refused({"log_sum_exp is absent", "[1, 2, 5]"}, call(args, whole, to));
  args.log_sum_exp = view_of(sums.data(), Dims{1, 2, 4});
  expect_refused({"log_sum_exp", "[1, 2, 4]", "[1, 2, 5]"}, call(args, whole, to));
  expect_refused({"tile.head", "2", "0 to 1"}, call(good, {0, 2, 0, 5, 0, 7}, to));
  expect_refused({"tile.batch", "-1"}, call(good, {-1, 0, 0, 5, 0, 7}, to));
  expect_refused({"queries", "[0, 6)", "[0, 5)"}, call(good, {0, 0, 0, 6, 0, 7}, to));
  expect_refused({"keys", "[5, 3)", "[0, 7)"}, call(good, {0, 0, 0, 5, 5, 3}, to));
  expect_refused({"to has dims", "[5, 7]", "[5, 6]"}, call(good, {0, 0, 0, 5, 0, 6}, to));
  args = good;
  args.log_sum_exp = view_of(probs.data(), Dims{1, 2, 5});
  expect_refused({"to", "log_sum_exp"}, call(args, whole, to));
  for (const float p : probs) EXPECT_EQ(p, kPoison);
  call(good, whole, to)();
}

}  // namespace
}  // namespace headway::testing
