// Softmax of f16 and bf16 in f32, rounded once; and to the letter where the node asks for that.
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

TEST(SoftmaxOp, NarrowTypesRoundOnce) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const std::int64_t n : {1, 2, 7, 8, 9, 33, 1000}) {
      for (const std::int64_t axis : {-1, 0}) {
        const Dims dims = axis == 0 ? Dims{n, 2} : Dims{2, n};
        Random random(static_cast<std::uint64_t>(n));
        std::vector<double> x;
        for (std::int64_t i = 0; i < 2 * n; ++i) x.push_back(3 * random.normal());
        x = as_doubles(numbers(type, dims, x));
        const auto y = as_doubles(run_on("Softmax", list(numbers(type, dims, x)), {{"axis", axis}}));
        for (std::int64_t row = 0; row < 2; ++row) {
          const auto at = [&](std::int64_t i) {
            return static_cast<std::size_t>(axis == 0 ? 2 * i + row : row * n + i);
          };
          double sum = 0;
          for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[at(i)]);
          for (std::int64_t i = 0; i < n; ++i) {
            const double exact = std::exp(x[at(i)]) / sum;
            const double nearest = as_doubles(numbers(type, {1}, {exact}))[0];
            EXPECT_LE(std::abs(y[at(i)] - exact), std::abs(nearest - exact) + 1e-6 * exact)
                << type_name(type) << " n " << n << " axis " << axis;
          }
        }
      }
    }
  }
}

TEST(SoftmaxOp, RoundsPerOpWhereTheNodeSaysSo) {
  // 300 ones added up in bf16 stop at 256.
  const std::vector<double> zeros(300, 0);
  const Attributes per_op{{"per_op_rounding", std::int64_t{1}}};
  const auto stepwise = as_doubles(run_on("Softmax", list(numbers(DataType::kBF16, {1, 300}, zeros)), per_op));
  const auto once = as_doubles(run_on("Softmax", list(numbers(DataType::kBF16, {1, 300}, zeros))));
  EXPECT_EQ(stepwise[0], 1.0 / 256);
  EXPECT_EQ(once[0], as_doubles(numbers(DataType::kBF16, {1}, {1.0 / 300}))[0]);
}

}  // namespace
}  // namespace headway::testing
