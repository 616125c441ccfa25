// Elementwise operators: every kind in every type, broadcasting, and what happens where C++ leaves it undefined.
#include <limits>

#include "tests/ops/graph/elementwise/float_values.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

constexpr auto kLowest64 = std::numeric_limits<std::int64_t>::min();
constexpr auto kHighest64 = std::numeric_limits<std::int64_t>::max();

const DataType kNumbers[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16,
                             DataType::kI8,  DataType::kU8,  DataType::kI32, DataType::kI64};

Tensor two(const char* op, Tensor a, Tensor b, const Attributes& attributes = {}) {
  return run_on(op, list(std::move(a), std::move(b)), attributes);
}

TEST(Arithmetic, InEveryType) {
  for (const DataType type : kNumbers) {
    SCOPED_TRACE(type_name(type));
    const auto a = [&] { return numbers(type, {4}, {7, 6, 5, 4}); };
    const auto b = [&] { return numbers(type, {4}, {2, 3, 5, 4}); };
    expect_tensor(two("Add", a(), b()), type, {4}, {9, 9, 10, 8});
    expect_tensor(two("Sub", a(), b()), type, {4}, {5, 3, 0, 0});
    expect_tensor(two("Mul", a(), b()), type, {4}, {14, 18, 25, 16});
    expect_tensor(two("Div", a(), b()), type, {4}, {is_float(type) ? 3.5 : 3, 2, 1, 1});
    expect_tensor(two("Max", a(), b()), type, {4}, {7, 6, 5, 4});
    expect_tensor(two("Min", a(), b()), type, {4}, {2, 3, 5, 4});
    expect_tensor(two("Mod", a(), b(), {{"fmod", std::int64_t{1}}}), type, {4}, {1, 0, 0, 0});
    expect_tensor(two("Pow", numbers(type, {3}, {3, 2, 5}), numbers(type, {3}, {2, 3, 0})), type, {3}, {9, 8, 1});
  }
}

TEST(Arithmetic, IntegersWrapAndDivideByAnything) {
  const auto i64 = [](std::vector<std::int64_t> v) { return axis_list(v); };
  EXPECT_EQ(values_of<std::int64_t>(two("Add", i64({kHighest64}), i64({1}))), (std::vector{kLowest64}));
  EXPECT_EQ(values_of<std::int64_t>(two("Sub", i64({kLowest64}), i64({1}))), (std::vector{kHighest64}));
  EXPECT_EQ(values_of<std::int64_t>(two("Mul", i64({kLowest64, 3}), i64({-1, -7}))),
            (std::vector<std::int64_t>{kLowest64, -21}));
  EXPECT_EQ(values_of<std::int64_t>(two("Div", i64({7, -7, 5, kLowest64}), i64({-2, 2, 0, -1}))),
            (std::vector<std::int64_t>{-3, -3, 0, kLowest64}));
  EXPECT_EQ(values_of<std::int64_t>(two("Mod", i64({-4, 7, 5, kLowest64, 3}), i64({3, -3, 0, -1, 3}))),
            (std::vector<std::int64_t>{2, -2, 0, 0, 0}));
  EXPECT_EQ(values_of<std::int64_t>(two("Mod", i64({-4, 7}), i64({3, -3}), {{"fmod", std::int64_t{1}}})),
            (std::vector<std::int64_t>{-1, 1}));
  EXPECT_EQ(values_of<std::int64_t>(two("Pow", i64({3, 2, -1, 2, 0}), i64({4, 70, -3, -1, 0}))),
            (std::vector<std::int64_t>{81, 0, -1, 0, 1}));
  EXPECT_EQ(
      values_of<std::int32_t>(two("Mul", tensor_of<std::int32_t>({1}, {65536}), tensor_of<std::int32_t>({1}, {65537}))),
      (std::vector<std::int32_t>{65536}));
  EXPECT_EQ(values_of<std::uint8_t>(two("Sub", tensor_of<std::uint8_t>({1}, {3}), tensor_of<std::uint8_t>({1}, {5}))),
            (std::vector<std::uint8_t>{254}));
}

TEST(Arithmetic, NanStaysAndPowersKnowTheirShortWays) {
  expect_tensor(two("Max", floats({3}, {kNan, 1, 2}), floats({3}, {1, kNan, 3})), DataType::kF32, {3}, {kNan, kNan, 3});
  expect_tensor(two("Min", floats({2}, {kNan, 1}), floats({2}, {1, kNan})), DataType::kF32, {2}, {kNan, kNan});
  expect_tensor(two("Pow", floats({3}, {-2, kInf, kNan}), floats({}, {2})), DataType::kF32, {3}, {4, kInf, kNan});
  expect_tensor(two("Pow", floats({2}, {-2, 3}), floats({}, {3})), DataType::kF32, {2}, {-8, 27});
  expect_tensor(two("Pow", floats({4}, {4, -0.0, -kInf, -1}), floats({}, {0.5})), DataType::kF32, {4},
                {2, 0, kInf, kNan});
  expect_tensor(two("Pow", floats({2}, {2, 3}), axis_list({10, -1})), DataType::kF32, {2}, {1024, double{1.0f / 3}});
  expect_tensor(two("Pow", axis_list({2, 9}), floats({2}, {3, 0.5})), DataType::kI64, {2}, {8, 3});
  expect_contains(refusal("Mod", list(floats({1}, {1}), floats({1}, {1}))), "fmod = 0, expected 1");
}

TEST(Arithmetic, BroadcastsLikeNumpy) {
  Random random(3);
  const Dims cases[][3] = {{{2, 3, 4}, {4}, {2, 3, 4}},
                           {{2, 1, 4}, {3, 1}, {2, 3, 4}},
                           {{}, {2, 2}, {2, 2}},
                           {{1}, {}, {1}},
                           {{3, 1, 2, 1}, {5, 1, 7}, {3, 5, 2, 7}},
                           {{0, 3}, {1, 3}, {0, 3}},
                           {{40, 1000}, {40, 1}, {40, 1000}},
                           {{33000}, {1}, {33000}}};
  for (const auto& [a_dims, b_dims, out_dims] : cases) {
    Tensor a = random_tensor(a_dims, &random), b = random_tensor(b_dims, &random);
    const auto x = as_doubles(a), y = as_doubles(b);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < element_count(out_dims); ++i) {
      // The offset of output element i in an operand, axis by axis from the right.
      const auto at = [&](const Dims& dims) {
        std::int64_t rest = i, offset = 0, stride = 1;
        for (int k = 1; k <= out_dims.rank(); ++k) {
          const std::int64_t index = rest % out_dims[out_dims.rank() - k];
          rest /= out_dims[out_dims.rank() - k];
          if (k > dims.rank()) continue;
          const std::int64_t size = dims[dims.rank() - k];
          if (size != 1) offset += index * stride;
          stride *= size;
        }
        return static_cast<std::size_t>(offset);
      };
      expected.push_back(static_cast<float>(x[at(a_dims)]) - static_cast<float>(y[at(b_dims)]));
    }
    expect_tensor(two("Sub", std::move(a), std::move(b)), DataType::kF32, out_dims, expected);
  }
  expect_contains(refusal("Sub", list(floats({3}, {1, 2, 3}), floats({2}, {1, 2}))),
                  "3 and 2 to be equal or one of them 1");
  expect_contains(refusal("Add", list(floats({1}, {1}), axis_list({1}))), "f32 and i64, expected equal types");
}

TEST(Arithmetic, AnyNumberOfInputs) {
  const auto all = [&](const char* op) {
    return run_on(op, list(floats({2, 1}, {1, 5}), floats({3}, {2, 3, 4}), floats({}, {3})));
  };
  expect_tensor(all("Sum"), DataType::kF32, {2, 3}, {6, 7, 8, 10, 11, 12});
  expect_tensor(all("Max"), DataType::kF32, {2, 3}, {3, 3, 4, 5, 5, 5});
  expect_tensor(all("Min"), DataType::kF32, {2, 3}, {1, 1, 1, 2, 3, 3});
  expect_tensor(run_on("Mean", list(floats({2}, {1, 5}), floats({}, {3}))), DataType::kF32, {2}, {2, 4});
  expect_tensor(run_on("Sum", list(floats({2}, {1, 5}))), DataType::kF32, {2}, {1, 5});
  expect_contains(refusal("Mean", list(axis_list({1}))), "i64");
}

TEST(UnaryMath, InEveryFloatTypeAgainstDouble) {
  struct Function {
    const char* op;
    double (*exact)(double);
  };
  const Function functions[] = {{"Exp", [](double x) { return std::exp(x); }},
                                {"Log", [](double x) { return std::log(x); }},
                                {"Sqrt", [](double x) { return std::sqrt(x); }},
                                {"Reciprocal", [](double x) { return 1 / x; }},
                                {"Erf", [](double x) { return std::erf(x); }},
                                {"Tanh", [](double x) { return std::tanh(x); }},
                                {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
                                {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
                                {"Sin", [](double x) { return std::sin(x); }},
                                {"Cos", [](double x) { return std::cos(x); }},
                                {"Tan", [](double x) { return std::tan(x); }},
                                {"Abs", [](double x) { return std::fabs(x); }},
                                {"Neg", [](double x) { return -x; }},
                                {"Relu", [](double x) { return x > 0 ? x : 0; }},
                                {"Floor", [](double x) { return std::floor(x); }},
                                {"Ceil", [](double x) { return std::ceil(x); }},
                                {"Round", [](double x) { return std::nearbyint(x); }},
                                {"Sign", [](double x) { return x > 0   ? 1.0
                                                               : x < 0 ? -1.0
                                                                       : 0.0; }},
                                {"Gelu", [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }}};
  for (const DataType type : kFloats) {
    const double epsilon = type == DataType::kF64   ? 1e-15
                           : type == DataType::kF32 ? 1e-6
                           : type == DataType::kF16 ? 1e-3
                                                    : 8e-3;
    for (const Function& f : functions) {
      const Tensor x = numbers(type, {7}, {0.25, 0.75, 1, 1.5, 2, 2.5, 3});
      const auto in = as_doubles(x);
      const auto got = as_doubles(run_on(f.op, list(numbers(type, {7}, in))));
      for (std::size_t i = 0; i < in.size(); ++i) {
        EXPECT_NEAR(got[i], f.exact(in[i]), epsilon * (1 + std::abs(f.exact(in[i])))) << f.op << " of " << in[i];
      }
    }
  }
}

TEST(UnaryMath, IntegersAndRefusals) {
  EXPECT_EQ(values_of<std::int64_t>(run_on("Abs", list(axis_list({-3, kLowest64})))),
            (std::vector<std::int64_t>{3, kLowest64}));
  EXPECT_EQ(values_of<std::int64_t>(run_on("Neg", list(axis_list({-3, kLowest64})))),
            (std::vector<std::int64_t>{3, kLowest64}));
  EXPECT_EQ(values_of<std::int64_t>(run_on("Sign", list(axis_list({-3, 0})))), (std::vector<std::int64_t>{-1, 0}));
  EXPECT_EQ(values_of<std::int64_t>(run_on("Relu", list(axis_list({-3, 4})))), (std::vector<std::int64_t>{0, 4}));
  expect_tensor(run_on("Round", list(floats({4}, {0.5, 1.5, -2.5, 2.6}))), DataType::kF32, {4}, {0, 2, -2, 3});
  expect_contains(refusal("Exp", list(axis_list({1}))), "is i64, expected one of f32");
  expect_contains(refusal("Neg", list(numbers(DataType::kBool, {1}, {1}))), "bool");
  expect_contains(refusal("Gelu", list(floats({1}, {1})), {{"approximate", std::string("fast")}}),
                  "'fast', expected none or tanh");
}

TEST(UnaryMath, GeluApproximations) {
  const auto got = as_doubles(run_on("Gelu", list(floats({3}, {-1, 0.5, 2})), {{"approximate", std::string("tanh")}}));
  const double expected[] = {-0.15880800939172324, 0.34571400982514394, 1.9545976940877752};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
}

TEST(UnaryMath, LargeTensorsGiveTheSameBitsOnAnyNumberOfThreads) {
  Random random(9);
  const Tensor x = random_tensor({3, 70000}, &random);
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 3, 8}) {
    Tensor copied(DataType::kF32, x.dims());
    copy_elements(x.view(), copied.view());
    results.push_back(values_of<float>(run_node("Gelu", list(std::move(copied)), {}, {.workers = workers})[0]));
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace headway::testing
