// The vectorised functions against double, on every SIMD target, with lengths around a vector, and at the edges.
#include "ops/simd/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <vector>

#include "ops/simd/target.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Runs `test` once a target.
void with_elementwise_kernels(const std::function<void(const ElementwiseKernels&)>& test) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    cap_simd_target(target);
    test(elementwise_kernels());
  }
  cap_simd_target("");
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double gelu_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }

struct Function {
  const char* name;
  UnaryKernel ElementwiseKernels::*kernel;
  double (*exact)(double);
  float low, high;
  double relative;     ///< bound on |got − exact| / |exact|
  double of_argument;  ///< plus this times |x|
};

const Function kFunctions[] = {
    {"exp", &ElementwiseKernels::exp, [](double x) { return std::exp(x); }, -87, 88.7f, 5e-7, 0},
    {"tanh", &ElementwiseKernels::tanh, [](double x) { return std::tanh(x); }, -12, 12, 5e-7, 0},
    {"sigmoid", &ElementwiseKernels::sigmoid, sigmoid, -80, 80, 5e-7, 0},
    {"erf", &ElementwiseKernels::erf, [](double x) { return std::erf(x); }, -7, 7, 3e-7, 0},
    {"gelu", &ElementwiseKernels::gelu, [](double x) { return x * normal_cdf(x); }, -12, 12, 0, 3e-7},
    {"gelu right of -5", &ElementwiseKernels::gelu, [](double x) { return x * normal_cdf(x); }, -5, 12, 4e-5, 0},
    {"gelu_tanh", &ElementwiseKernels::gelu_tanh, gelu_tanh, -12, 12, 0, 5e-7},
    {"silu", &ElementwiseKernels::silu, [](double x) { return x * sigmoid(x); }, -86, 80, 8e-7, 0},
    {"sqrt", &ElementwiseKernels::sqrt, [](double x) { return std::sqrt(x); }, 0, 1e30f, 6e-8, 0},
    {"reciprocal", &ElementwiseKernels::reciprocal, [](double x) { return 1 / x; }, 1e-3f, 1e3f, 6e-8, 0},
    {"relu", &ElementwiseKernels::relu, [](double x) { return x < 0 ? 0 : x; }, -10, 10, 0, 0},
};

TEST(ElementwiseKernels, FunctionsKeepTheirBounds) {
  with_elementwise_kernels([](const ElementwiseKernels& kernels) {
    for (const Function& f : kFunctions) {
      std::vector<float> x, y(200001);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double at = static_cast<double>(i) / static_cast<double>(y.size() - 1);
        x.push_back(static_cast<float>(f.low + at * (static_cast<double>(f.high) - static_cast<double>(f.low))));
      }
      // Small arguments too: relative precision near 0 is its own matter.
      for (std::size_t i = 0; i < 500; ++i) {
        if (f.low <= 0) x[i] = std::ldexp(1.0f, -static_cast<int>(i % 100)) * (f.low < 0 && i % 2 == 0 ? -1.0f : 1.0f);
      }
      (kernels.*f.kernel)(x.data(), y.data(), static_cast<std::int64_t>(y.size()));
      double worst = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double exact = f.exact(x[i]);
        const double bound = f.relative * std::abs(exact) + f.of_argument * std::abs(double{x[i]}) + 1e-38;
        const double ratio = std::abs(y[i] - exact) / bound;
        if (!(ratio <= worst)) worst = ratio;
      }
      EXPECT_LE(worst, 1) << f.name;
      if (simd_target() == simd_targets()[0]) std::cout << f.name << ": worst error " << worst << " of the bound\n";
    }
  });
}

TEST(ElementwiseKernels, EdgesAndLengths) {
  with_elementwise_kernels([](const ElementwiseKernels& kernels) {
    const auto value = [&](UnaryKernel kernel, float x) {
      float y = -77;
      kernel(&x, &y, 1);
      return y;
    };
    EXPECT_EQ(value(kernels.exp, -kInf), 0);
    EXPECT_EQ(value(kernels.exp, 89), kInf);
    EXPECT_EQ(value(kernels.exp, kInf), kInf);
    EXPECT_EQ(value(kernels.exp, 0), 1);
    EXPECT_NEAR(value(kernels.exp, 88.7f) / std::exp(double{88.7f}), 1, 5e-7);
    EXPECT_NEAR(value(kernels.exp, -95) / std::exp(-95.0), 1, 1e-4);  // a denormal of 2400 steps
    EXPECT_EQ(value(kernels.tanh, kInf), 1);
    EXPECT_EQ(value(kernels.tanh, -kInf), -1);
    EXPECT_EQ(value(kernels.sigmoid, kInf), 1);
    EXPECT_EQ(value(kernels.sigmoid, -kInf), 0);
    EXPECT_EQ(value(kernels.erf, kInf), 1);
    EXPECT_EQ(value(kernels.erf, -kInf), -1);
    EXPECT_EQ(value(kernels.gelu, kInf), kInf);
    EXPECT_FLOAT_EQ(value(kernels.gelu, 100), 100);
    for (const float x : {-9.0f, -1e3f, -1e20f, -kInf}) EXPECT_EQ(value(kernels.gelu, x), 0) << x;
    EXPECT_EQ(value(kernels.gelu_tanh, kInf), kInf);
    EXPECT_FLOAT_EQ(value(kernels.gelu_tanh, 1e30f), 1e30f);
    for (const float x : {-31.0f, -1e3f, -1e20f, -kInf}) EXPECT_EQ(value(kernels.gelu_tanh, x), 0) << x;
    EXPECT_EQ(value(kernels.sigmoid, -1e30f), 0);
    EXPECT_EQ(value(kernels.sigmoid, 1e30f), 1);
    EXPECT_EQ(value(kernels.tanh, 1e30f), 1);
    EXPECT_EQ(value(kernels.erf, -1e30f), -1);
    EXPECT_EQ(value(kernels.relu, -kInf), 0);
    EXPECT_TRUE(std::isnan(value(kernels.sqrt, -1)));
    EXPECT_EQ(value(kernels.reciprocal, 0), kInf);
    for (const Function& f : kFunctions) EXPECT_TRUE(std::isnan(value(kernels.*f.kernel, kNan))) << f.name;
    // Every length around one and two vectors, from a misaligned start, touches nothing beyond it.
    for (int n = 0; n <= 35; ++n) {
      std::vector<float> x(40, 0.5f), y(40, -77);
      kernels.gelu(x.data() + 1, y.data() + 1, n);
      EXPECT_EQ(y[0], -77);
      for (int i = 1; i <= n; ++i) EXPECT_NEAR(y[static_cast<std::size_t>(i)], 0.5 * normal_cdf(0.5), 1e-6);
      for (std::size_t i = static_cast<std::size_t>(n) + 1; i < 40; ++i) EXPECT_EQ(y[i], -77) << n;
    }
  });
}

TEST(ElementwiseKernels, BinaryRowsOfAllSteps) {
  with_elementwise_kernels([](const ElementwiseKernels& kernels) {
    Random random(5);
    std::vector<float> a(36), b(36);
    for (float& v : a) v = random.normal();
    for (float& v : b) v = random.normal();
    for (std::int64_t n = 0; n <= 35; ++n) {
      for (const std::int64_t step_a : {0, 1}) {
        for (const std::int64_t step_b : {0, 1}) {
          const auto expect_all = [&](BinaryKernel kernel, auto exact) {
            std::vector<float> y(36, -77);
            kernel({a.data(), step_a, b.data(), step_b, y.data(), n});
            for (std::int64_t i = 0; i < n; ++i) {
              EXPECT_EQ(y[static_cast<std::size_t>(i)],
                        exact(a[static_cast<std::size_t>(i * step_a)], b[static_cast<std::size_t>(i * step_b)]));
            }
            for (std::int64_t i = n; i < 36; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], -77);
          };
          expect_all(kernels.add, [](float x, float y) { return x + y; });
          expect_all(kernels.sub, [](float x, float y) { return x - y; });
          expect_all(kernels.mul, [](float x, float y) { return x * y; });
          expect_all(kernels.div, [](float x, float y) { return x / y; });
        }
      }
    }
  });
}

}  // namespace
}  // namespace headway::testing
