// Row normalisation against double, on every SIMD target.
#include "ops/simd/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <utility>
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

/// The largest |y − exact| over what norm.h allows, of a row without scale and bias.
double worst_over_bound(const NormKernels& kernels, const std::vector<float>& x, bool rms, float epsilon) {
  const auto n = static_cast<double>(x.size());
  long double mean = 0, squares = 0;
  for (const float v : x) mean += rms ? 0 : static_cast<long double>(v) / static_cast<long double>(n);
  double spread = 0;
  for (const float v : x) {
    squares += (v - mean) * (v - mean);
    spread = std::max(spread, rms ? 0 : std::abs(double{v} - double{x[0]}));
  }
  const double std = std::sqrt(static_cast<double>(squares / static_cast<long double>(n)) + double{epsilon});
  std::vector<float> y(x.size(), -77);
  const NormRow row{x.data(), y.data(), nullptr, nullptr, static_cast<std::int64_t>(x.size()), epsilon};
  rms ? kernels.rms_norm(row) : kernels.layer_norm(row);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double z = static_cast<double>(static_cast<long double>(x[i]) - mean) / std;
    const double bound =
        0x1p-24 * (std::abs(z) * (40 + n / 512) + 2 * std::abs(z) + spread / std * (4 + n / 4096)) + 1e-37;
    const double ratio = std::abs(double{y[i]} - z) / bound;
    if (!(ratio <= worst)) worst = ratio;
  }
  return worst;
}

void with_norm_kernels(const std::function<void(const NormKernels&)>& test) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    cap_simd_target(target);
    test(norm_kernels());
  }
  cap_simd_target("");
}

constexpr std::size_t kWidths[] = {1, 2, 7, 8, 9, 768, 1024, 32768};

TEST(NormKernels, AConstantRowGivesExactlyItsBias) {
  with_norm_kernels([](const NormKernels& kernels) {
    for (const std::size_t n : kWidths) {
      for (const float constant : {1000.7f, 100000.1f, -0.1f, 1e-30f, 1e-42f, 3e38f, -3e38f}) {
        const std::vector<float> x(n, constant), scale(n, 1.7f), bias(n, 0.3f);
        std::vector<float> y(n, -77);
        kernels.layer_norm({x.data(), y.data(), nullptr, nullptr, static_cast<std::int64_t>(n), 1e-5f});
        for (const float v : y) ASSERT_EQ(v, 0) << constant << ", n = " << n;
        const NormMoments m =
            kernels.layer_norm({x.data(), y.data(), scale.data(), bias.data(), static_cast<std::int64_t>(n), 1e-12f});
        for (const float v : y) ASSERT_EQ(v, 0.3f) << constant << ", n = " << n;
        EXPECT_EQ(m.mean, constant);
      }
    }
  });
}

TEST(NormKernels, RowsFarFromZeroKeepTheirDigits) {
  double worst = 0;
  with_norm_kernels([&](const NormKernels& kernels) {
    for (const std::size_t n : kWidths) {
      for (const auto& [mean, std] : {std::pair(100.0f, 0.01f),
                                      {1000.7f, 1.0f},
                                      {100000.1f, 0.5f},
                                      {-3e6f, 10.0f},
                                      {1e-30f, 1e-31f},
                                      {0.0f, 1.0f},
                                      {0.0f, 1e-41f}}) {
        for (const bool rms : {false, true}) {
          Random random(n + 1);
          std::vector<float> x(n);
          for (float& v : x) v = mean + std * random.normal();
          const double ratio = worst_over_bound(kernels, x, rms, 1e-12f);
          EXPECT_LE(ratio, 1) << "mean " << mean << " std " << std << " n " << n << " rms " << rms;
          worst = std::max(worst, ratio);
        }
      }
    }
  });
  std::cout << "worst error of a row far from 0: " << worst << " of the bound\n";
}

TEST(NormKernels, AnElementFarFromAllOthersIsNoReferencePoint) {
  with_norm_kernels([](const NormKernels& kernels) {
    for (const std::size_t n : {7, 768, 32768}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        Random random(9);
        std::vector<float> x(n);
        for (float& v : x) v = random.normal();
        x[at] = 1e6f;
        EXPECT_LE(worst_over_bound(kernels, x, false, 1e-5f), 1) << n << " at " << at;
        EXPECT_LE(worst_over_bound(kernels, x, true, 1e-5f), 1) << n << " at " << at;
      }
    }
  });
}

TEST(NormKernels, SquaresOutsideOfF32AreTakenInF64) {
  with_norm_kernels([](const NormKernels& kernels) {
    for (const std::size_t n : {2, 7, 9, 768}) {
      for (const float size : {1e20f, 1.5e38f, 1e-25f, 1e-40f}) {
        for (const bool rms : {false, true}) {
          Random random(3);
          std::vector<float> x(n);
          for (float& v : x) v = size * static_cast<float>(random.uniform() - 0.5);
          x[0] = size;
          EXPECT_LE(worst_over_bound(kernels, x, rms, size < 1 ? 0.0f : 1e-5f), 1) << size << ", n = " << n;
        }
      }
    }
  });
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
