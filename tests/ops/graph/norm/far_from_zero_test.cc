// Norms of rows that lie far from 0, in every type, as one operator and as the operators that it is made of.
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

const DataType kFloats[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16};

std::vector<double> constant_row(std::int64_t n, double value) {
  return std::vector<double>(static_cast<std::size_t>(n), value);
}

TEST(Norms, AConstantRowGivesItsBiasInEveryType) {
  for (const DataType type : kFloats) {
    for (const std::int64_t n : {1, 7, 768, 1024}) {
      for (const double constant : {1000.7, 60000.1, 1e-5, -3.3}) {
        const Tensor y = run_on("LayerNormalization",
                                list(numbers(type, {2, n}, constant_row(2 * n, constant)),
                                     numbers(type, {n}, constant_row(n, 3)), numbers(type, {n}, constant_row(n, 0.5))));
        for (const double v : as_doubles(y)) ASSERT_EQ(v, 0.5) << type_name(type) << ' ' << constant << ' ' << n;
      }
    }
  }
}

TEST(Norms, ADoubleRowOfAnySizeIsNormalised) {
  for (const double size : {1e-300, 1e-160, 1.0, 1e160, 1.7e308}) {
    const Tensor y = run_on(
        "LayerNormalization",
        list(numbers(DataType::kF64, {1, 4}, {size, -size, size, -size}), numbers(DataType::kF64, {4}, {1, 1, 1, 1})),
        {{"epsilon", size < 1 ? 0.0f : 1e-5f}});
    const auto got = as_doubles(y);
    const double exact = size == 1 ? 1 / std::sqrt(1 + double{1e-5f}) : 1;
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], i % 2 == 0 ? exact : -exact, 1e-15) << size;
  }
}

TEST(Norms, ADoubleRowFarFromZeroKeepsItsDigits) {
  const std::int64_t n = 32768;
  Random random(5);
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(1e6 + 1e-3 * random.normal());
  // Around 1e6, from which the distances are exact: a long double of the mean's own size would hold too few digits.
  long double mean = 0, squares = 0;
  for (const double v : x) mean += static_cast<long double>(v - 1e6) / n;
  for (const double v : x) squares += (v - 1e6 - mean) * (v - 1e6 - mean);
  const long double std = std::sqrt(squares / n + static_cast<long double>(1e-12f));
  const auto y = as_doubles(run_on("LayerNormalization",
                                   list(numbers(DataType::kF64, {1, n}, x), numbers(DataType::kF64, {1}, {1})),
                                   {{"epsilon", 1e-12f}}));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto exact = static_cast<double>((x[i] - 1e6 - mean) / std);
    ASSERT_NEAR(y[i], exact, 1e-13 * (1 + std::abs(exact)));
  }
}

/// mean((x − mean(x))²) by the operators.
double variance_by_operators(const std::vector<double>& x, DataType type) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Attributes last{{"axes", std::vector<std::int64_t>{-1}}};
  const Tensor mean = run_on("ReduceMean", list(numbers(type, {1, n}, x)), last);
  const Tensor off = run_on("Sub", list(numbers(type, {1, n}, x), numbers(type, {1, 1}, as_doubles(mean))));
  const Tensor squares = run_on("ReduceSumSquare", list(numbers(type, {1, n}, as_doubles(off))), last);
  return as_doubles(squares)[0] / static_cast<double>(n);
}

TEST(Reduce, VarianceOfAConstantRowIsZero) {
  for (const DataType type : kFloats) {
    for (const std::size_t n : {1, 2, 7, 768, 1024, 32768}) {
      for (const double constant : {1000.7, 100000.1, 1e-30, 3e38}) {
        if (type == DataType::kF16 && constant > 65504) continue;
        // A mean of doubles is not exact, but the others are sums in f64.
        const double off = type == DataType::kF64 ? 3e-14 * constant : 0;
        EXPECT_LE(variance_by_operators(std::vector<double>(n, constant), type), off * off)
            << type_name(type) << ' ' << constant << " n " << n;
      }
    }
  }
}

TEST(Reduce, ALongRowOfDoublesLosesNoDigits) {
  const std::int64_t n = 4000003;
  const Tensor sum = run_on("ReduceSum", list(numbers(DataType::kF64, {n}, std::vector<double>(4000003, 0.1))));
  EXPECT_NEAR(as_doubles(sum)[0], 400000.3, 1e-8);  // one by one it loses a hundred times as much
}

TEST(Reduce, SquaresOfLargeFloatsDoNotOverflow) {
  expect_tensor(run_on("ReduceL2", list(floats({2}, {3e30, 4e30}))), DataType::kF32, {1}, {double{5e30f}});
  expect_tensor(run_on("ReduceL2", list(numbers(DataType::kF16, {2}, {3000, 4000}))), DataType::kF16, {1}, {5000});
  expect_tensor(run_on("ReduceMean", list(numbers(DataType::kF16, {3}, {60000, 60000, 60000}))), DataType::kF16, {1},
                {double{60000}});
  expect_tensor(run_on("ReduceMean", list(floats({2}, {3e38, 3e38}))), DataType::kF32, {1}, {double{3e38f}});
}

/// Exact result of a norm in double, rounded once to the type.
double rounded_to(DataType type, double value) { return as_doubles(numbers(type, {1}, {value}))[0]; }

TEST(Norms, NarrowRowsRoundOnceWhateverTheScaleStretchesOver) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    Random random(7);
    std::vector<double> x, scale, bias;
    for (int i = 0; i < 32; ++i) x.push_back(random.normal());
    for (int i = 0; i < 4; ++i) scale.push_back(1 + 0.3 * random.normal());
    for (int i = 0; i < 4; ++i) bias.push_back(random.normal());
    x = as_doubles(numbers(type, {4, 8}, x));
    scale = as_doubles(numbers(type, {4, 1}, scale));
    bias = as_doubles(numbers(type, {4, 1}, bias));
    const auto y = as_doubles(run_on("LayerNormalization", list(numbers(type, {4, 8}, x), numbers(type, {4, 1}, scale),
                                                                numbers(type, {4, 1}, bias))));
    for (std::size_t r = 0; r < 4; ++r) {
      double mean = 0, squares = 0;
      for (std::size_t i = 0; i < 8; ++i) mean += x[8 * r + i] / 8;
      for (std::size_t i = 0; i < 8; ++i) squares += (x[8 * r + i] - mean) * (x[8 * r + i] - mean);
      for (std::size_t i = 0; i < 8; ++i) {
        const double exact = (x[8 * r + i] - mean) / std::sqrt(squares / 8 + double{1e-5f}) * scale[r] + bias[r];
        // Half a step of the type, and what f32 may add on the way.
        const double step = std::abs(rounded_to(type, exact) - exact) + 4e-7 * (1 + std::abs(exact));
        EXPECT_LE(std::abs(y[8 * r + i] - exact), step) << type_name(type) << " row " << r;
      }
    }
  }
}

TEST(Norms, SimplifiedTakesAScaleOfAnotherType) {
  const Tensor y = run_on("SimplifiedLayerNormalization",
                          list(numbers(DataType::kF16, {1, 2}, {300, 400}), floats({2}, {1, 2})), {{"epsilon", 0.0f}});
  ASSERT_EQ(y.type(), DataType::kF32);
  EXPECT_NEAR(y.data<float>()[0], 300 / std::sqrt(125000.0), 1e-7);
  EXPECT_NEAR(y.data<float>()[1], 800 / std::sqrt(125000.0), 2e-7);
  const Tensor narrow =
      run_on("SimplifiedLayerNormalization", list(floats({1, 2}, {300, 400}), numbers(DataType::kBF16, {2}, {1, 1})),
             {{"epsilon", 0.0f}});
  EXPECT_EQ(narrow.type(), DataType::kBF16);
  expect_contains(refusal("LayerNormalization", list(numbers(DataType::kF16, {1, 2}, {3, 4}), floats({2}, {1, 1}))),
                  "f16 and f32");
}

TEST(Norms, SkipNormsInNarrowTypes) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const bool rms : {false, true}) {
      // 300² · 8 overflows f16.
      std::vector<double> x, skip, gamma, bias;
      Random random(4);
      for (int i = 0; i < 16; ++i) x.push_back(300 * random.normal());
      for (int i = 0; i < 16; ++i) skip.push_back(random.normal());
      for (int i = 0; i < 8; ++i) gamma.push_back(1 + 0.2 * random.normal());
      for (int i = 0; i < 8; ++i) bias.push_back(random.normal());
      x = as_doubles(numbers(type, {2, 8}, x));
      skip = as_doubles(numbers(type, {2, 8}, skip));
      gamma = as_doubles(numbers(type, {8}, gamma));
      bias = as_doubles(numbers(type, {8}, bias));
      std::vector<Tensor> inputs =
          list(numbers(type, {2, 8}, x), numbers(type, {2, 8}, skip), numbers(type, {8}, gamma));
      if (!rms) inputs.push_back(numbers(type, {8}, std::vector<double>(8, 0)));
      inputs.push_back(numbers(type, {8}, bias));
      const auto got =
          run_node(rms ? "com.microsoft.SkipSimplifiedLayerNormalization" : "com.microsoft.SkipLayerNormalization",
                   std::move(inputs), {{"epsilon", 1e-6f}}, {.outputs = 4});
      ASSERT_EQ(got[0].type(), type);
      ASSERT_EQ(got[3].type(), type);
      const auto y = as_doubles(got[0]), sums = as_doubles(got[3]);
      for (std::size_t r = 0; r < 2; ++r) {
        double sum[8], mean = 0, squares = 0;
        for (std::size_t i = 0; i < 8; ++i) sum[i] = x[8 * r + i] + skip[8 * r + i] + bias[i];
        for (std::size_t i = 0; i < 8 && !rms; ++i) mean += sum[i] / 8;
        for (std::size_t i = 0; i < 8; ++i) squares += (sum[i] - mean) * (sum[i] - mean);
        for (std::size_t i = 0; i < 8; ++i) {
          EXPECT_EQ(sums[8 * r + i], rounded_to(type, static_cast<double>(static_cast<float>(sum[i]))));
          const double exact = (sum[i] - mean) / std::sqrt(squares / 8 + double{1e-6f}) * gamma[i];
          const double step = std::abs(rounded_to(type, exact) - exact) + 1e-6 * (1 + std::abs(exact));
          EXPECT_LE(std::abs(y[8 * r + i] - exact), step) << type_name(type) << (rms ? " rms" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace headway::testing
