// The kernels for few queries one by one against double, on every SIMD target: every number of rows, tails of depth,
// columns and steps, streams that are not aligned, both types, and nothing written outside the outputs.
#include "ops/simd/few_queries.h"

#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

void multiply(const FewQueriesKernels& kernels, const FewScores<float>& t) { kernels.score(t); }
void multiply(const FewQueriesKernels& kernels, const FewScores<BFloat16>& t) { kernels.score_bf16(t); }
void multiply(const FewQueriesKernels& kernels, const FewContext<float>& t) { kernels.context(t); }
void multiply(const FewQueriesKernels& kernels, const FewContext<BFloat16>& t) { kernels.context_bf16(t); }

/// Four streams of rows: `kPrefetched` rows more than there are steps, since the kernels prefetch beyond the last.
template <class Real>
struct Streams {
  static constexpr std::int64_t kPrefetched = 8;
  Streams(std::int64_t steps, std::int64_t width, unsigned seed) : stride(width + 1) {
    for (const float x : random_numbers(kKeyStreams * (steps + kPrefetched) * stride + 1, seed)) {
      values.push_back(convert<Real>(x));
    }
    for (int s = 0; s < kKeyStreams; ++s) first[s] = values.data() + 1 + s * (steps + kPrefetched) * stride;
  }
  std::int64_t stride;
  std::vector<Real> values;
  const Real* first[kKeyStreams];
};

template <class Real>
void expect_scores(std::int64_t rows, std::int64_t depth, std::int64_t steps, const std::string& target) {
  const Streams<Real> keys(steps, depth, 1);
  const std::vector<float> queries = random_numbers(rows * depth, 2);
  const std::int64_t row_stride = steps * kKeyStreams + 3;
  const Guarded scores(rows * row_stride);
  FewScores<Real> t{.key = {},
                    .key_stride = keys.stride,
                    .steps = steps,
                    .queries = queries.data(),
                    .rows = rows,
                    .depth = depth,
                    .scores = scores.data(),
                    .row_stride = row_stride};
  std::copy_n(keys.first, kKeyStreams, t.key);
  multiply(few_queries_kernels(), t);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t at = 0; at < row_stride; ++at) {
      const float got = scores[r * row_stride + at];
      if (at >= steps * kKeyStreams) {
        ASSERT_EQ(got, kPoison) << target << " wrote beyond row " << r;
        continue;
      }
      double sum = 0, magnitude = 0;
      for (std::int64_t c = 0; c < depth; ++c) {
        const double term = static_cast<double>(queries[static_cast<std::size_t>(r * depth + c)]) *
                            static_cast<double>(widen(keys.first[at / steps][at % steps * keys.stride + c]));
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(got, sum, 1e-6 * magnitude)
          << target << " rows " << rows << " depth " << depth << " row " << r << " at " << at;
    }
  }
  ASSERT_TRUE(scores.clean_beyond(rows * row_stride)) << target;
}

template <class Real>
void expect_context(std::int64_t rows, std::int64_t columns, std::int64_t steps, const std::string& target) {
  const Streams<Real> values(steps, columns, 3);
  const std::int64_t row_stride = steps * kKeyStreams + 3;
  const std::vector<float> probs = random_numbers(rows * row_stride, 4);
  const std::vector<float> rescale = random_numbers(rows, 5);
  const std::vector<float> before = random_numbers(rows * columns, 6);
  const Guarded context(before);
  FewContext<Real> t{.value = {},
                     .value_stride = values.stride,
                     .steps = steps,
                     .scores = probs.data(),
                     .row_stride = row_stride,
                     .rows = rows,
                     .columns = columns,
                     .rescale = rescale.data(),
                     .context = context.data()};
  std::copy_n(values.first, kKeyStreams, t.value);
  multiply(few_queries_kernels(), t);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = static_cast<double>(rescale[static_cast<std::size_t>(r)]) *
                   static_cast<double>(before[static_cast<std::size_t>(r * columns + c)]);
      double magnitude = std::abs(sum);
      for (std::int64_t at = 0; at < steps * kKeyStreams; ++at) {
        const double term = static_cast<double>(probs[static_cast<std::size_t>(r * row_stride + at)]) *
                            static_cast<double>(widen(values.first[at / steps][at % steps * values.stride + c]));
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(context[r * columns + c], sum, 1e-6 * magnitude)
          << target << " rows " << rows << " columns " << columns << " row " << r << " column " << c;
    }
  }
  ASSERT_TRUE(context.clean_beyond(rows * columns)) << target;
}

TEST(FewQueries, EveryRowCountAndTail) {
  on_every_target([](const std::string& target) {
    for (std::int64_t rows = 1; rows <= 9; ++rows) {
      for (const std::int64_t width : {1, 3, 4, 8, 15, 16, 17, 33, 64, 67, 131, 256, 259}) {
        for (const std::int64_t steps : {1, 3, 9}) {
          expect_scores<float>(rows, width, steps, target);
          expect_scores<BFloat16>(rows, width, steps, target);
          expect_context<float>(rows, width, steps, target);
          expect_context<BFloat16>(rows, width, steps, target);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(FewQueries, SoftmaxOfEveryLength) {
  on_every_target([](const std::string& target) {
    for (std::int64_t n = 1; n <= 50; ++n) {
      const std::vector<float> x = random_numbers(n, static_cast<unsigned>(n));
      const Guarded scores(x);
      float maximum = 0.25f, sum = 3, rescale = 0;
      few_queries_kernels().softmax(
          {.scores = scores.data(), .n = n, .maximum = &maximum, .sum = &sum, .rescale = &rescale});
      float highest = 0.25f;
      for (const float v : x) highest = std::max(highest, v);
      ASSERT_EQ(maximum, highest) << target;
      const double factor = std::exp(0.25 - static_cast<double>(highest));
      double total = 3 * factor;
      for (std::int64_t i = 0; i < n; ++i) {
        const double p = std::exp(static_cast<double>(x[static_cast<std::size_t>(i)]) - static_cast<double>(highest));
        ASSERT_NEAR(scores[i], p, 1e-6 * p) << target << " n " << n << " at " << i;
        total += p;
      }
      ASSERT_NEAR(rescale, factor, 1e-6 * factor) << target;
      ASSERT_NEAR(sum, total, 3e-6 * total) << target;
      ASSERT_TRUE(scores.clean_beyond(n)) << target << " n " << n;
    }
  });
}

}  // namespace
}  // namespace headway::testing
