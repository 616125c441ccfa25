// MatMul with numpy's rules: ranks, broadcasting, vectors, constants.
#include <gtest/gtest.h>

#include <cmath>

#include "headway/numerical_bound.h"
#include "ops/graph/products/product.h"
#include "tests/ops/graph/run_graph.h"
#include "tests/ops/matmul/matmul_bound.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

/// Offset of the matrix of one batch entry of `batch` in an operand of these dims, which may broadcast.
std::int64_t matrix_offset(const Dims& dims, const Dims& batch, std::int64_t entry) {
  std::int64_t offset = 0;
  std::int64_t stride = dims[dims.rank() - 2] * dims.back();
  for (int i = batch.rank() - 1, a = dims.rank() - 3; i >= 0; --i, --a) {
    const std::int64_t index = entry % batch[i];
    entry /= batch[i];
    if (a < 0) continue;
    if (dims[a] != 1) offset += index * stride;
    stride *= dims[a];
  }
  return offset;
}

struct Case {
  Dims a, b, batch, out;  // operands, broadcast batch dims, dims of the result
};

void expect_product(const Case& c, bool constant) {
  Random random(7);
  Tensor a = random_tensor(c.a, &random);
  Tensor b = random_tensor(c.b, &random);
  const std::vector<float> x = values_of<float>(a), w = values_of<float>(b);
  const Tensor y = run_op("MatMul", list(std::move(a), std::move(b)), {}, constant ? 1 : SIZE_MAX);
  ASSERT_EQ(y.dims(), c.out) << c.a << " x " << c.b;
  const Dims da = c.a.rank() == 1 ? Dims{1, c.a[0]} : c.a;
  const Dims db = c.b.rank() == 1 ? Dims{c.b[0], 1} : c.b;
  const std::int64_t m = da[da.rank() - 2], k = da.back(), n = db.back();
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const std::int64_t entry = i / (m * n), row = i / n % m, column = i % n;
    const std::int64_t at_a = matrix_offset(da, c.batch, entry) + row * k;
    const std::int64_t at_b = matrix_offset(db, c.batch, entry) + column;
    double sum = 0, magnitude = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      const double term = static_cast<double>(x[static_cast<std::size_t>(at_a + j)]) *
                          static_cast<double>(w[static_cast<std::size_t>(at_b + j * n)]);
      sum += term;
      magnitude += std::abs(term);
    }
    EXPECT_NEAR(y.data<float>()[i], sum, kMatmulBound * numerical_bound::kEpsilon * magnitude)
        << c.a << " x " << c.b << " at " << i;
  }
}

TEST(MatMul, NumpyRules) {
  const Case cases[] = {
      {{3, 4}, {4, 5}, {}, {3, 5}},
      {{4}, {4}, {}, {}},
      {{4}, {4, 5}, {}, {5}},
      {{3, 4}, {4}, {}, {3}},
      {{2, 3, 4}, {4, 5}, {2}, {2, 3, 5}},
      {{3, 4}, {2, 4, 5}, {2}, {2, 3, 5}},
      {{2, 1, 3, 4}, {5, 4, 6}, {2, 5}, {2, 5, 3, 6}},
      {{1, 3, 4}, {7, 4, 2}, {7}, {7, 3, 2}},
      {{2, 3, 130, 33}, {2, 3, 33, 17}, {2, 3}, {2, 3, 130, 17}},
      {{4}, {3, 4, 5}, {3}, {3, 5}},
      {{2, 300, 20}, {20, 1100}, {2}, {2, 300, 1100}},
      {{0, 4}, {4, 5}, {}, {0, 5}},
      {{3, 0}, {0, 5}, {}, {3, 5}},
      {{2, 3, 4}, {4}, {2}, {2, 3}},
      {{3, 16, 70}, {3, 70, 1}, {3}, {3, 16, 1}},
      {{2, 1, 3, 4}, {5, 4, 1}, {2, 5}, {2, 5, 3, 1}},
      {{1, 3, 4}, {7, 4, 1}, {7}, {7, 3, 1}},
      {{2, 600, 20}, {20, 1}, {2}, {2, 600, 1}},
      {{5, 1, 9}, {5, 9, 1}, {5}, {5, 1, 1}},
      {{2, 3, 0}, {2, 0, 1}, {2}, {2, 3, 1}},
  };
  for (const Case& c : cases) {
    for (const bool constant : {false, true}) expect_product(c, constant);
  }
}

/// oneDNN writes a column by its reference code, a thousand times as slow.
TEST(MatMul, AColumnIsComputedAsARow) {
  const ProductSpec column{.batch = {3}, .a_batch = {3}, .b_batch = {3}, .m = 16, .n = 1, .k = 8};
  expect_contains(make_product(column)->explain(), "blocks of 1 × 16, 3 tasks");
  const ProductSpec single{.batch = {3}, .a_batch = {3}, .b_batch = {1}, .m = 16, .n = 1, .k = 8};
  expect_contains(make_product(single)->explain(), "blocks of 1 × 48, 1 tasks");
}

TEST(MatMul, NamesBothDims) {
  const auto error = [](const Dims& a, const Dims& b) {
    return error_of([&] {
      Random random(1);
      run_op("MatMul", list(random_tensor(a, &random), random_tensor(b, &random)));
    });
  };
  expect_contains(error({2, 3}, {4, 5}), "depths 3 and 4");
  expect_contains(error({2, 3, 4}, {3, 4, 5}), "batches 2 and 3");
  expect_contains(error({}, {3}), "ranks 0 and 1");
}

}  // namespace
}  // namespace headway::testing
