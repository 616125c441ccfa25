// Row normalisation against double, on every SIMD target.
#include "ops/simd/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <vector>

#include "ops/simd/target.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

struct Row {
  std::vector<float> x, scale, bias;
};

Row random_row(std::size_t n, float offset, std::uint64_t seed) {
  Random random(seed);
  Row row;
  for (std::size_t i = 0; i < n; ++i) {
    row.x.push_back(offset + random.normal());
    row.scale.push_back(1 + 0.3f * random.normal());
    row.bias.push_back(random.normal());
  }
  return row;
}

/// The worst difference; entries are of the order of one.
double worst_error(const NormKernels& kernels, const Row& row, bool rms, bool affine) {
  const std::size_t n = row.x.size();
  double mean = 0, squares = 0;
  for (const float v : row.x) mean += rms ? 0 : double{v} / static_cast<double>(n);
  for (const float v : row.x) squares += (v - mean) * (v - mean);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
  std::vector<float> y(n, -77);
  const NormRow args{row.x.data(),
                     y.data(),
                     affine ? row.scale.data() : nullptr,
                     affine ? row.bias.data() : nullptr,
                     static_cast<std::int64_t>(n),
                     1e-5f};
  const NormMoments moments = rms ? kernels.rms_norm(args) : kernels.layer_norm(args);
  EXPECT_NEAR(moments.mean, mean, 1e-6 * (1 + std::abs(mean)));
  EXPECT_NEAR(moments.inverse_std / inverse, 1, 2e-6);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double exact = (row.x[i] - mean) * inverse;
    if (affine) exact = exact * double{row.scale[i]} + double{row.bias[i]};
    const double difference = std::abs(y[i] - exact);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

TEST(NormKernels, AgreeWithDouble) {
  double worst = 0;
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    const NormKernels kernels = norm_kernels();
    for (const std::size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 384, 768, 1000, 4097}) {
      for (const bool rms : {false, true}) {
        for (const bool affine : {false, true}) {
          const double error = worst_error(kernels, random_row(n, 0.5f, n), rms, affine);
          EXPECT_LE(error, 4e-6) << target << ", n = " << n << (rms ? ", rms" : "");
          worst = std::max(worst, error);
        }
      }
    }
  }
  cap_simd_target("");
  std::cout << "worst error of a normalised row: " << worst << "\n";
}

TEST(NormKernels, AMeanFarFromZeroDoesNotCancel) {
  // In one pass, E[x²] − E[x]² would lose everything here.
  EXPECT_LE(worst_error(norm_kernels(), random_row(768, 1000, 3), false, false), 2e-4);
}

TEST(NormKernels, NanAndConstantRows) {
  std::vector<float> x(20, 3), y(20);
  const NormKernels kernels = norm_kernels();
  kernels.layer_norm({x.data(), y.data(), nullptr, nullptr, 20, 1e-5f});
  for (const float v : y) EXPECT_EQ(v, 0);
  x[7] = std::nanf("");
  kernels.layer_norm({x.data(), y.data(), nullptr, nullptr, 20, 1e-5f});
  for (const float v : y) EXPECT_TRUE(std::isnan(v));
  kernels.rms_norm({x.data(), x.data(), nullptr, nullptr, 20, 1e-5f});
  for (const float v : x) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace headway::testing
