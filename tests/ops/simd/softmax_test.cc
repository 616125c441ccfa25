// exp of the softmax against double, on every SIMD target.
#include "ops/simd/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <vector>

#include "ops/base/numeric.h"
#include "ops/simd/target.h"

namespace headway::testing {
namespace {

/// `count` numbers from `low` to `high`, ends included.
std::vector<float> spread(float low, float high, int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i)
    x.push_back(low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1));
  return x;
}

std::vector<float> exp_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  softmax_kernels().exp(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}

double worst_relative_error(const std::vector<float>& x) {
  const std::vector<float> y = exp_of(x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(y[i] / std::exp(double{x[i]}) - 1);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

TEST(SoftmaxExp, KeepsItsBounds) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    const double near = worst_relative_error(spread(-20, 0, 200001));
    const double far = worst_relative_error(spread(-86.9f, 88, 200001));
    std::cout << target << ": " << near << " on [-20, 0], " << far << " on [-86.9, 88]\n";
    EXPECT_LE(near, 2.6e-7) << target;
    EXPECT_LE(far, 4.1e-7) << target;
  }
  cap_simd_target("");
}

/// A product with a denormal takes a hundred cycles on some cores: rows with scores far below their maximum made the
/// context twenty times slower.
TEST(SoftmaxExp, NothingIsDenormal) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    const std::vector<float> x = spread(-90, -86, 100001);
    const std::vector<float> y = exp_of(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(y[i] == 0 || std::fpclassify(y[i]) == FP_NORMAL) << target << ": exp(" << x[i] << ") is " << y[i];
      if (x[i] <= -87) {
        EXPECT_EQ(y[i], 0) << target << ": exp(" << x[i] << ")";
      }
    }
  }
  cap_simd_target("");
}

/// The two passes of a softmax whose weights are bf16: every length, several scales, one NaN.
TEST(SoftmaxBf16, WeightsAreRoundedExpsAndTheSumIsNot) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    const SoftmaxKernels kernels = softmax_kernels();
    for (const float scale : {1.0f, 1.41421356f, 0.7f}) {
      for (std::int64_t n = 0; n <= 70; ++n) {
        const std::vector<float> x = spread(-9, 4, static_cast<int>(n) + 2);
        float max = -100;
        for (std::int64_t i = 0; i < n; ++i) max = std::max(max, x[static_cast<std::size_t>(i)]);
        EXPECT_EQ(kernels.row_max(x.data(), n, -100), max) << target << " " << n;
        EXPECT_EQ(kernels.row_max(x.data(), n, 100), 100) << target << " " << n;
        std::vector<BFloat16> weights(80, BFloat16{0x1234});
        const float sum = kernels.exp_to_bf16(x.data(), n, scale, max, weights.data());
        double exact = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          if (i >= static_cast<std::size_t>(n)) {
            ASSERT_EQ(weights[i].bits, 0x1234) << target << " " << n;
            continue;
          }
          const double p =
              std::exp(static_cast<double>(scale) * (static_cast<double>(x[i]) - static_cast<double>(max)));
          exact += p;
          ASSERT_NEAR(widen(weights[i]), p, p / 250) << target << " " << n;
        }
        EXPECT_NEAR(sum, exact, 2e-6 * exact) << target << " " << n;
      }
    }
    for (std::size_t where = 0; where < 37; ++where) {
      std::vector<float> x = spread(-9, 4, 37);
      x[where] = std::nanf("");
      std::vector<BFloat16> weights(37);
      EXPECT_FALSE(std::isnan(kernels.row_max(x.data(), 37, -100))) << target << " " << where;
      EXPECT_TRUE(std::isnan(kernels.exp_to_bf16(x.data(), 37, 1, 4, weights.data()))) << target << " " << where;
      EXPECT_TRUE(std::isnan(widen(weights[where]))) << target << " " << where;
    }
  }
  cap_simd_target("");
}

/// The end of a row's softmax: max + ln(sum), every length around a vector, and what a row without keys has.
TEST(SoftmaxLogSumExp, KeepsItsBounds) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    std::vector<float> sums = spread(0.5f, 3, 4001);
    for (float sum = 1e-30f; sum < 1e30f; sum *= 1.37f) sums.push_back(sum);
    double worst = 0;
    for (const float max : {0.0f, 3.5f, -40.0f}) {
      const std::vector<float> maxima(sums.size(), max);
      std::vector<float> out(sums.size());
      softmax_kernels().log_sum_exp(maxima.data(), sums.data(), out.data(), static_cast<std::int64_t>(sums.size()));
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const double log = std::log(double{sums[i]});
        const double exact = double{max} + log;
        const double bound = 1.2e-7 * (1 + std::abs(log)) + 6e-8 * std::abs(exact);
        worst = std::max(worst, std::abs(out[i] - exact) / bound);
        ASSERT_NEAR(out[i], exact, bound) << target << ": max " << max << " sum " << sums[i];
      }
    }
    std::cout << target << ": " << worst << " of the bound\n";
    for (std::int64_t n = 0; n <= 35; ++n) {
      std::vector<float> values(40, 7);
      const std::vector<float> maxima(40, std::numeric_limits<float>::lowest());
      std::fill_n(values.begin(), n, 0.0f);
      if (n > 2) values[static_cast<std::size_t>(n - 2)] = std::numeric_limits<float>::quiet_NaN();
      softmax_kernels().log_sum_exp(maxima.data(), values.data(), values.data(), n);
      for (std::int64_t i = 0; i < 40; ++i) {
        const float got = values[static_cast<std::size_t>(i)];
        if (n > 2 && i == n - 2) {
          EXPECT_TRUE(std::isnan(got)) << target << " " << n;
        } else {
          EXPECT_EQ(got, i < n ? -std::numeric_limits<float>::infinity() : 7) << target << " " << n << " " << i;
        }
      }
    }
  }
  cap_simd_target("");
}

TEST(SoftmaxExp, InfinityAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    const std::vector<float> y = exp_of({-kInfinity, std::numeric_limits<float>::lowest(), 0, std::nanf("")});
    EXPECT_EQ(y[0], 0) << target;
    EXPECT_EQ(y[1], 0) << target;
    EXPECT_EQ(y[2], 1) << target;
    EXPECT_TRUE(std::isnan(y[3])) << target;
  }
  cap_simd_target("");
}

}  // namespace
}  // namespace headway::testing
