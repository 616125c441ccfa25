// Activations at infinities, far out and at NaN, in every type; and narrow types rounded once.
#include <limits>

#include "ops/simd/target.h"
#include "tests/ops/graph/elementwise/float_values.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

struct Extreme {
  const char* op;
  Attributes attributes;
  std::vector<double> y;  ///< at the arguments below
};
// 60000 is far out in every type; bf16 makes it 59904.
const std::vector<double> kArguments = {-kInf, -32768, 32768, kInf, kNan};

TEST(Activations, ExtremesInEveryTypeOnEveryTarget) {
  const Extreme extremes[] = {
      {"Gelu", {}, {0, 0, 32768, kInf, kNan}},
      {"Gelu", {{"approximate", std::string("tanh")}}, {0, 0, 32768, kInf, kNan}},
      {"com.microsoft.Gelu", {}, {0, 0, 32768, kInf, kNan}},
      {"Swish", {}, {0, 0, 32768, kInf, kNan}},
      {"Swish", {{"alpha", -1.0f}}, {-kInf, -32768, 0, 0, kNan}},
      {"com.microsoft.QuickGelu", {}, {0, 0, 32768, kInf, kNan}},
      {"Softplus", {}, {0, 0, 32768, kInf, kNan}},
      {"Sigmoid", {}, {0, 0, 1, 1, kNan}},
      {"Tanh", {}, {-1, -1, 1, 1, kNan}},
      {"Erf", {}, {-1, -1, 1, 1, kNan}},
      {"Relu", {}, {0, 0, 32768, kInf, kNan}},
      {"Exp", {}, {0, 0, kInf, kInf, kNan}},
  };
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    for (const Extreme& e : extremes) {
      for (const DataType type : kFloats) {
        SCOPED_TRACE(std::string(e.op) + ' ' + type_name(type) + ' ' + target);
        expect_tensor(run_on(e.op, list(numbers(type, {5}, kArguments)), e.attributes), type, {5}, e.y);
        // The same in whole vectors, of which the other elements are ordinary.
        for (std::size_t i = 0; i < kArguments.size(); ++i) {
          std::vector<double> x(64, 0.5);
          x[21] = kArguments[i];
          const double y = as_doubles(run_on(e.op, list(numbers(type, {64}, x)), e.attributes))[21];
          if (std::isnan(e.y[i])) {
            EXPECT_TRUE(std::isnan(y));
          } else {
            EXPECT_EQ(y, e.y[i]) << "at " << kArguments[i];
          }
        }
      }
    }
  }
  cap_simd_target("");
}

TEST(Activations, SwishIsXTimesItsSigmoid) {
  for (const DataType type : kFloats) {
    Random random(3);
    std::vector<double> x;
    for (int i = 0; i < 700; ++i) x.push_back(4 * random.normal());
    x = as_doubles(numbers(type, {700}, x));
    for (const float alpha : {1.0f, 1.702f}) {
      const auto y = as_doubles(run_on("Swish", list(numbers(type, {700}, x)), {{"alpha", alpha}}));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = x[i] / (1 + std::exp(-double{alpha} * x[i]));
        const double nearest = as_doubles(numbers(type, {1}, {exact}))[0];
        const double bound = std::abs(nearest - exact) + (type == DataType::kF64 ? 1e-15 : 1e-6) * std::abs(exact);
        EXPECT_LE(std::abs(y[i] - exact), bound) << type_name(type) << " at " << x[i];
      }
    }
  }
}

TEST(SumOp, ManyNarrowTensorsRoundOnce) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const char* op : {"Sum", "Mean"}) {
      const double n = 9;
      std::vector<Tensor> inputs = list(numbers(type, {2, 3}, std::vector<double>(6, 256)));
      // Each is lost beside 256 in bf16, all together are not.
      for (int i = 0; i < 8; ++i) inputs.push_back(numbers(type, {3}, {0.5, 0.25, 0.125}));
      const Tensor y = run_on(op, std::move(inputs));
      ASSERT_EQ(y.type(), type);
      const double divisor = std::string_view(op) == "Mean" ? n : 1;
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t k = 0; k < 3; ++k) {
          const double exact = (256 + 8 * std::ldexp(0.5, -static_cast<int>(k))) / divisor;
          EXPECT_EQ(as_doubles(y)[static_cast<std::size_t>(row * 3 + k)], as_doubles(numbers(type, {1}, {exact}))[0]);
        }
      }
    }
  }
}

TEST(SumOp, TheMeanOfLargeHalvesDoesNotOverflow) {
  expect_tensor(run_on("Mean", list(numbers(DataType::kF16, {1}, {60000}), numbers(DataType::kF16, {1}, {50016}))),
                DataType::kF16, {1}, {55008});
}

}  // namespace
}  // namespace headway::testing
