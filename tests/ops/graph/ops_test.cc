// The small operators, each against what its formula says.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/graph/run_graph.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

using Floats = std::vector<float>;

Tensor counting(const Dims& dims) {
  Tensor tensor(DataType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(RegisterOps, KnowsEachOperatorOnce) {
  Registry registry;
  register_ops(&registry);
  for (const char* name :
       {"MultiHeadAttention", "Attention", "MatMul", "Softmax", "Add", "Mul", "Reshape", "Transpose"}) {
    EXPECT_NE(registry.find(name), nullptr) << name;
  }
  error_of([&] { register_ops(&registry); });
}

TEST(AddMul, BroadcastFromTheRight) {
  EXPECT_EQ(values_of<float>(run_op("Add", list(counting({2, 3}), tensor_of<float>({3}, {10, 20, 30})))),
            (Floats{10, 21, 32, 13, 24, 35}));
  EXPECT_EQ(values_of<float>(run_op("Mul", list(tensor_of<float>({2, 1}, {2, 3}), counting({2, 3})))),
            (Floats{0, 2, 4, 9, 12, 15}));
  EXPECT_EQ(values_of<float>(run_op("Add", list(counting({2, 1}), counting({1, 3})))), (Floats{0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(values_of<float>(run_op("Mul", list(tensor_of<float>({}, {3}), counting({3})))), (Floats{0, 3, 6}));
  EXPECT_EQ(values_of<float>(run_op("Add", list(tensor_of<float>({}, {3}), tensor_of<float>({}, {4})))), (Floats{7}));
  EXPECT_EQ(run_op("Add", list(counting({0, 3}), counting({3}))).dims(), (Dims{0, 3}));
}

TEST(AddMul, LargeTensorsOnSeveralThreads) {
  Random random(1);
  Tensor a = random_tensor({7, 5, 1, 999}, &random);
  Tensor b = random_tensor({5, 3, 1}, &random);
  Floats expected;
  for (int i = 0; i < 7 * 5 * 3; ++i) {
    for (int j = 0; j < 999; ++j) expected.push_back(a.data<float>()[i / 3 * 999 + j] * b.data<float>()[i % 15]);
  }
  EXPECT_EQ(values_of<float>(run_op("Mul", list(std::move(a), std::move(b)), {}, SIZE_MAX, Threads::openmp(3))),
            expected);
}

TEST(AddMul, NameBothDims) {
  expect_contains(error_of([] { run_op("Add", list(counting({2, 3}), counting({2}))); }), "[2, 3]");
  expect_contains(error_of([] { run_op("Mul", list(counting({2}), tensor_of<std::int32_t>({2}, {1, 2}))); }), "i32");
}

TEST(Reshape, InfersAndCopiesDims) {
  EXPECT_EQ(run_op("Reshape", list(counting({2, 3, 4})), {{"dims", std::vector<std::int64_t>{0, -1}}}).dims(),
            (Dims{2, 12}));
  const Tensor y = run_op("Reshape", list(tensor_of<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6})),
                          {{"dims", std::vector<std::int64_t>{3, 2}}});
  EXPECT_EQ(values_of<std::int64_t>(y), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Reshape, NamesWhatIsWrong) {
  const auto reshaped = [](std::vector<std::int64_t> dims) {
    return error_of([&] { run_op("Reshape", list(counting({2, 3})), {{"dims", dims}}); });
  };
  expect_contains(reshaped({4, 2}), "6 elements");
  expect_contains(reshaped({-1, -1}), "expected one at most");
  expect_contains(reshaped({4, -1}), "cannot infer");
  expect_contains(reshaped({2, 3, 0}), "rank 2");
  expect_contains(reshaped({-2, 3}), "-2");
}

TEST(Transpose, AnyPermutationOfAnyType) {
  EXPECT_EQ(values_of<float>(run_op("Transpose", list(counting({2, 3})))), (Floats{0, 3, 1, 4, 2, 5}));
  const Tensor y = run_op("Transpose", list(counting({2, 3, 4})), {{"perm", std::vector<std::int64_t>{1, 2, 0}}});
  EXPECT_EQ(y.dims(), (Dims{3, 4, 2}));
  EXPECT_EQ(y.data<float>()[(2 * 4 + 3) * 2 + 1], 23);
  EXPECT_EQ(y.data<float>()[(0 * 4 + 1) * 2 + 1], 13);
  const Tensor bytes = run_op("Transpose", list(tensor_of<std::uint8_t>({1, 3}, {7, 8, 9})));
  EXPECT_EQ(values_of<std::uint8_t>(bytes), (std::vector<std::uint8_t>{7, 8, 9}));
}

TEST(Transpose, NamesWhatIsWrong) {
  const auto transposed = [](std::vector<std::int64_t> perm) {
    return error_of([&] { run_op("Transpose", list(counting({2, 3})), {{"perm", perm}}); });
  };
  expect_contains(transposed({0}), "1 axes, expected rank 2");
  expect_contains(transposed({0, 2}), "holds 2");
  expect_contains(transposed({1, 1}), "twice");
}

TEST(Softmax, OverAnyAxis) {
  Random random(2);
  for (const std::int64_t axis : {-1, 0, 1, 2}) {
    Tensor x = random_tensor({3, 5, 67}, &random, 3);
    const Floats in = values_of<float>(x);
    const Tensor y = run_op("Softmax", list(std::move(x)), {{"axis", axis}});
    const Dims dims = y.dims();
    const int a = static_cast<int>(axis < 0 ? axis + 3 : axis);
    const std::int64_t step = a == 0 ? 5 * 67 : a == 1 ? 67 : 1;
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const std::int64_t first = i - i / step % dims[a] * step;
      double sum = 0;
      for (std::int64_t j = 0; j < dims[a]; ++j)
        sum += std::exp(double{in[static_cast<std::size_t>(first + j * step)]});
      const double exact = std::exp(double{in[static_cast<std::size_t>(i)]}) / sum;
      EXPECT_NEAR(y.data<float>()[i], exact, 2e-6 * exact) << "axis " << axis;
    }
  }
  expect_contains(error_of([] {
                    run_op("Softmax", list(counting({2, 3})), {{"axis", std::int64_t{2}}});
                  }),
                  "axis is 2, expected -2 to 1");
}

}  // namespace
}  // namespace headway::testing
