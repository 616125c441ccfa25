// Reductions, running sums, softmax and norms against double.
#include <functional>
#include <limits>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const DataType kFloats[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16};

double epsilon_of(DataType type) {
  return type == DataType::kF64 ? 1e-13 : type == DataType::kF32 ? 2e-6 : type == DataType::kF16 ? 2e-3 : 1.6e-2;
}

struct Reduction {
  const char* op;
  std::function<double(const std::vector<double>&)> exact;
};

double sum_of(const std::vector<double>& v, double (*f)(double)) {
  double sum = 0;
  for (const double x : v) sum += f(x);
  return sum;
}

const Reduction kReductions[] = {
    {"ReduceSum", [](const auto& v) { return sum_of(v, [](double x) { return x; }); }},
    {"ReduceMean", [](const auto& v) { return sum_of(v, [](double x) { return x; }) / static_cast<double>(v.size()); }},
    {"ReduceMax", [](const auto& v) { return *std::max_element(v.begin(), v.end()); }},
    {"ReduceMin", [](const auto& v) { return *std::min_element(v.begin(), v.end()); }},
    {"ReduceProd",
     [](const auto& v) {
       double product = 1;
       for (const double x : v) product *= x;
       return product;
     }},
    {"ReduceSumSquare", [](const auto& v) { return sum_of(v, [](double x) { return x * x; }); }},
    {"ReduceL1", [](const auto& v) { return sum_of(v, [](double x) { return std::fabs(x); }); }},
    {"ReduceL2", [](const auto& v) { return std::sqrt(sum_of(v, [](double x) { return x * x; })); }},
    {"ReduceLogSum", [](const auto& v) { return std::log(sum_of(v, [](double x) { return x; })); }},
    {"ReduceLogSumExp", [](const auto& v) { return std::log(sum_of(v, [](double x) { return std::exp(x); })); }},
};

TEST(Reduce, AllKindsOverAllSetsOfAxes) {
  const Dims dims{2, 3, 1, 7};
  for (const DataType type : kFloats) {
    Random random(4);
    std::vector<double> raw;
    for (std::int64_t i = 0; i < element_count(dims); ++i) raw.push_back(0.5 + random.uniform());
    const std::vector<double> in = as_doubles(numbers(type, dims, raw));
    for (const Reduction& r : kReductions) {
      for (std::uint32_t set = 0; set < 16; ++set) {
        Ints axes;
        Dims kept;
        std::vector<std::vector<double>> groups(1);
        for (int a = 0; a < 4; ++a) {
          const bool goes = (set >> a & 1u) != 0;
          if (goes) axes.push_back(a % 2 == 0 ? a : a - 4);
          kept.push_back(goes ? 1 : dims[a]);
        }
        const Dims strides = contiguous_strides(kept);
        groups.resize(static_cast<std::size_t>(element_count(kept)));
        for (std::size_t i = 0; i < in.size(); ++i) {
          std::int64_t rest = static_cast<std::int64_t>(i), at = 0;
          for (int a = 3; a >= 0; --a) {
            if (kept[a] != 1) at += rest % dims[a] * strides[a];
            rest /= dims[a];
          }
          groups[static_cast<std::size_t>(at)].push_back(in[i]);
        }
        const Tensor y =
            run_on(r.op, list(numbers(type, dims, in), axis_list(axes)), {{"noop_with_empty_axes", std::int64_t{1}}});
        ASSERT_EQ(y.dims(), kept) << r.op;
        const auto got = as_doubles(y);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double exact = r.exact(groups[i]);
          EXPECT_NEAR(got[i], exact, epsilon_of(type) * (1 + std::abs(exact))) << r.op << " over set " << set;
        }
      }
    }
  }
}

TEST(Reduce, FormsAndEdges) {
  const auto x = [] { return counted({2, 3}); };
  expect_tensor(run_on("ReduceSum", list(x())), DataType::kF32, {1, 1}, {15});
  expect_tensor(run_on("ReduceSum", list(x()), {{"keepdims", std::int64_t{0}}}), DataType::kF32, {}, {15});
  expect_tensor(run_on("ReduceMean", list(x()), {{"axes", Ints{-1}}, {"keepdims", std::int64_t{0}}}), DataType::kF32,
                {2}, {1, 4});
  expect_tensor(run_on("ReduceMax", list(counted({}))), DataType::kF32, {}, {0});
  expect_tensor(run_on("ReduceMax", list(floats({3}, {1, kNan, 2}))), DataType::kF32, {1}, {kNan});
  expect_tensor(run_on("ReduceMax", list(floats({2}, {-kInf, -kInf}))), DataType::kF32, {1}, {-kInf});
  expect_tensor(run_on("ReduceSum", list(counted({2, 0}), axis_list({1}))), DataType::kF32, {2, 1}, {0, 0});
  expect_tensor(run_on("ReduceMax", list(counted({1, 0}), axis_list({1}))), DataType::kF32, {1, 1}, {-kInf});
  expect_tensor(run_on("ReduceMin", list(counted({0}, DataType::kI32))), DataType::kI32, {1}, {2147483647});
  expect_tensor(run_on("ReduceMean", list(counted({0, 2}), axis_list({0}))), DataType::kF32, {1, 2}, {kNan, kNan});
  expect_tensor(run_on("ReduceMean", list(axis_list({3, 4}))), DataType::kI64, {1}, {3});
  EXPECT_EQ(values_of<std::int64_t>(run_on("ReduceSum", list(axis_list({INT64_MAX, 1})))), (Ints{INT64_MIN}));
  EXPECT_EQ(values_of<std::int64_t>(run_on("ReduceL1", list(axis_list({INT64_MIN, 0})))), (Ints{INT64_MIN}));
  expect_tensor(run_on("ReduceLogSumExp", list(floats({2}, {1000, 1000}))), DataType::kF32, {1},
                {double{1000.69314718056f}});
  expect_tensor(run_on("ReduceLogSumExp", list(floats({2}, {-kInf, -kInf}))), DataType::kF32, {1}, {-kInf});
  expect_contains(refusal("ReduceSum", list(x(), axis_list({2}))), "axis is 2, expected -2 to 1");
  expect_contains(refusal("ReduceSum", list(x(), axis_list({0, -2}))), "twice");
  expect_contains(refusal("ReduceL2", list(axis_list({1}))), "i64");
  expect_contains(refusal("ReduceSum", list(numbers(DataType::kBool, {1}, {1}))), "bool");
}

TEST(Reduce, ALongRowRoundsOnce) {
  Random random(8);
  const Tensor x = random_tensor({1, 200001}, &random);
  double exact = 0;
  for (const double v : as_doubles(x)) exact += v;
  Tensor copied(DataType::kF32, x.dims());
  copy_elements(x.view(), copied.view());
  EXPECT_NEAR(as_doubles(run_on("ReduceSum", list(std::move(copied)), {{"axes", Ints{1}}}))[0], exact,
              1e-6 * std::abs(exact) + 1e-9);
}

/// Squares of 1e300 are infinite and those of 1e-300 are 0, in f64 and in no wider type that there is.
TEST(Reduce, TheNormOfElementsWhoseSquaresNoTypeHolds) {
  const auto norm = [](DataType type, const std::vector<double>& elements) {
    const auto count = static_cast<std::int64_t>(elements.size());
    return as_doubles(run_on("ReduceL2", list(numbers(type, {count}, elements))))[0];
  };
  for (const double size : {1e300, 1e-300, 1e160, 1e-170, 1.0}) {
    EXPECT_NEAR(norm(DataType::kF64, {3 * size, -4 * size}) / size, 5, 1e-14) << size;
    EXPECT_NEAR(norm(DataType::kF64, std::vector<double>(10000, -size)) / size, 100, 1e-12) << size;
    // Beside one that is much larger.
    EXPECT_NEAR(norm(DataType::kF64, {0, 1, size, 1}), std::hypot(size, std::sqrt(2.0)), 1e-14 * std::max(size, 1.0));
  }
  const double tiniest = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(norm(DataType::kF64, {3 * tiniest, 4 * tiniest}), 5 * tiniest);
  EXPECT_EQ(norm(DataType::kF64, {std::numeric_limits<double>::max()}), std::numeric_limits<double>::max());
  EXPECT_EQ(norm(DataType::kF64, {1e308, 1e308, 1e308, 1e308, 1e308}), kInf);
  EXPECT_EQ(norm(DataType::kF64, {-kInf, 1}), kInf);
  EXPECT_TRUE(std::isnan(norm(DataType::kF64, {kNan, 1e300})));
  EXPECT_EQ(norm(DataType::kF64, {0, 0}), 0);
  EXPECT_EQ(as_doubles(run_on("ReduceL2", list(Tensor(DataType::kF64, {0}))))[0], 0);
  for (const double size : {1e30, 1e-30, 6e37}) {
    EXPECT_NEAR(norm(DataType::kF32, {3 * size, -4 * size}) / size, 5, 1e-6) << size;
  }
  EXPECT_NEAR(norm(DataType::kBF16, {3e30, -4e30}) / 1e30, 5, 0.02);
  EXPECT_NEAR(norm(DataType::kF16, {300, -400}), 500, 0.25);
}

TEST(CumSum, DirectionsAndAxes) {
  const auto sums = [](std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
    return run_on("CumSum", list(counted({2, 3}), integers({}, {axis})),
                  {{"exclusive", exclusive}, {"reverse", reverse}});
  };
  expect_tensor(sums(1, 0, 0), DataType::kF32, {2, 3}, {0, 1, 3, 3, 7, 12});
  expect_tensor(sums(-1, 1, 0), DataType::kF32, {2, 3}, {0, 0, 1, 0, 3, 7});
  expect_tensor(sums(1, 0, 1), DataType::kF32, {2, 3}, {3, 3, 2, 12, 9, 5});
  expect_tensor(sums(1, 1, 1), DataType::kF32, {2, 3}, {3, 2, 0, 9, 5, 0});
  expect_tensor(sums(0, 0, 0), DataType::kF32, {2, 3}, {0, 1, 2, 3, 5, 7});
  EXPECT_EQ(values_of<std::int64_t>(run_on("CumSum", list(axis_list({INT64_MAX, 1}), axis_list({0})))),
            (Ints{INT64_MAX, INT64_MIN}));
  expect_tensor(run_on("CumSum", list(counted({0}), axis_list({0}))), DataType::kF32, {0}, {});
  expect_contains(refusal("CumSum", list(counted({2}), axis_list({1}))), "axis is 1");
}

TEST(SoftmaxOp, InEveryFloatType) {
  for (const DataType type : kFloats) {
    Random random(6);
    std::vector<double> raw;
    for (int i = 0; i < 60; ++i) raw.push_back(2 * random.normal());
    const auto in = as_doubles(numbers(type, {3, 20}, raw));
    const auto got = as_doubles(run_on("Softmax", list(numbers(type, {3, 20}, in))));
    for (std::size_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (std::size_t j = 0; j < 20; ++j) sum += std::exp(in[row * 20 + j]);
      for (std::size_t j = 0; j < 20; ++j) {
        const double exact = std::exp(in[row * 20 + j]) / sum;
        EXPECT_NEAR(got[row * 20 + j], exact, epsilon_of(type) * exact * 2) << type_name(type);
      }
    }
    expect_tensor(run_on("Softmax", list(numbers(type, {1, 2}, {-kInf, 3}))), type, {1, 2}, {0, 1});
    expect_tensor(run_on("Softmax", list(numbers(type, {1, 2}, {-kInf, -kInf}))), type, {1, 2}, {kNan, kNan});
    expect_tensor(run_on("Softmax", list(numbers(type, {2, 0}, {}))), type, {2, 0}, {});
  }
  expect_contains(refusal("Softmax", list(axis_list({1}))), "i64");
}

/// Rows of n elements; scale and bias have one element each of the row, or one for all.
std::vector<double> normalised(const std::vector<double>& x, std::size_t n, const std::vector<double>& scale,
                               const std::vector<double>& bias, bool rms) {
  std::vector<double> y;
  for (std::size_t first = 0; first < x.size(); first += n) {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < n && !rms; ++i) mean += x[first + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean);
    for (std::size_t i = 0; i < n; ++i) {
      y.push_back((x[first + i] - mean) / std::sqrt(squares / static_cast<double>(n) + 0x1p-10) *
                      scale[i % scale.size()] +
                  bias[i % bias.size()]);
    }
  }
  return y;
}

TEST(Norms, InEveryTypeAndAxis) {
  const Dims dims{3, 2, 5};
  for (const DataType type : kFloats) {
    for (const std::int64_t axis : {-1, 1, -3}) {
      for (const bool rms : {false, true}) {
        Random random(2);
        const auto random_of = [&](const Dims& d) {
          std::vector<double> values;
          for (std::int64_t i = 0; i < element_count(d); ++i) values.push_back(random.normal());
          return as_doubles(numbers(type, d, values));
        };
        const Dims row = axis == -1 ? Dims{5} : axis == 1 ? Dims{2, 5} : dims;
        const auto x = random_of(dims), scale = random_of(row), bias = random_of(row);
        std::vector<Tensor> inputs = list(numbers(type, dims, x), numbers(type, row, scale));
        if (!rms) inputs.push_back(numbers(type, row, bias));
        const auto got = run_node(rms ? "RMSNormalization" : "LayerNormalization", std::move(inputs),
                                  {{"axis", axis}, {"epsilon", 0x1p-10f}}, {.outputs = rms ? 1 : 3});
        const auto exact = normalised(x, scale.size(), scale, rms ? std::vector<double>{0} : bias, rms);
        const auto y = as_doubles(got[0]);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_NEAR(y[i], exact[i], epsilon_of(type) * (1 + std::abs(exact[i])))
              << type_name(type) << " axis " << axis;
        }
        if (rms) continue;
        EXPECT_EQ(got[1].type(), DataType::kF32);
        EXPECT_EQ(got[2].dims(), axis == -1 ? (Dims{3, 2, 1}) : axis == 1 ? (Dims{3, 1, 1}) : (Dims{1, 1, 1}));
      }
    }
  }
}

TEST(Norms, ScaleAndBiasOfOtherShapes) {
  const auto x = [] { return floats({2, 2, 2}, {1, 3, -1, 1, 0, 2, 4, 6}); };
  // Every row of two is (−1, 1) once normalised, up to epsilon = 0.
  const Attributes exact{{"epsilon", 0.0f}};
  expect_tensor(run_on("LayerNormalization", list(x(), floats({1}, {2})), exact), DataType::kF32, {2, 2, 2},
                {-2, 2, -2, 2, -2, 2, -2, 2});
  expect_tensor(run_on("LayerNormalization", list(x(), floats({2, 1}, {2, 3}), floats({2}, {10, 20})), exact),
                DataType::kF32, {2, 2, 2}, {8, 22, 7, 23, 8, 22, 7, 23});
  expect_tensor(run_on("LayerNormalization", list(x(), floats({1, 2}, {2, 3}), floats({2, 1, 1}, {1, 2})), exact),
                DataType::kF32, {2, 2, 2}, {-1, 4, -1, 4, 0, 5, 0, 5});
  const auto simplified = run_node("SimplifiedLayerNormalization", list(floats({1, 2}, {3, 4}), floats({2}, {5, 5})),
                                   exact, {.outputs = 2});
  EXPECT_NEAR(simplified[1].data<float>()[0], 1 / std::sqrt(12.5), 1e-7);
  expect_contains(refusal("LayerNormalization", list(x(), floats({3}, {1, 1, 1}))), "[3]");
  expect_contains(refusal("LayerNormalization", list(x(), floats({2, 2, 2, 2}, std::vector<double>(16, 1)))),
                  "expected to broadcast");
  expect_contains(refusal("RMSNormalization", list(axis_list({1}), axis_list({1}))), "i64");
  expect_contains(refusal("LayerNormalization", list(x(), floats({2}, {1, 1})), {{"axis", std::int64_t{3}}}),
                  "axis is 3");
}

TEST(Norms, SkipAddsBeforeItNormalises) {
  const auto got = run_node("com.microsoft.SkipLayerNormalization",
                            list(floats({1, 2, 2}, {0, 1, 2, 3}), floats({2, 2}, {1, 2, 0, 5}), floats({2}, {2, 3}),
                                 floats({2}, {10, 20}), floats({2}, {1, 0})),
                            {{"epsilon", 0.0f}}, {.outputs = 4});
  expect_tensor(got[3], DataType::kF32, {1, 2, 2}, {2, 3, 3, 8});
  const auto y = as_doubles(got[0]);
  const double expected[] = {8, 23, 8, 23};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-5);
  expect_tensor(got[1], DataType::kF32, {1, 2, 1}, {2.5, 5.5});
  const auto rms =
      run_on("com.microsoft.SkipSimplifiedLayerNormalization",
             list(floats({1, 2}, {1, 2}), floats({1, 2}, {2, 2}), floats({2}, {1, 1})), {{"epsilon", 0.0f}});
  EXPECT_NEAR(rms.data<float>()[0], 3 / std::sqrt(12.5), 1e-6);
  expect_contains(refusal("com.microsoft.SkipLayerNormalization",
                          list(floats({1, 2}, {1, 2}), floats({3}, {1, 1, 1}), floats({2}, {1, 1}))),
                  "input 1 has dims [3]");
  expect_contains(refusal("com.microsoft.SkipLayerNormalization",
                          list(floats({1, 2}, {1, 2}), floats({2}, {1, 1}), floats({1}, {1}))),
                  "input 2 has dims [1]");
}

}  // namespace
}  // namespace headway::testing
