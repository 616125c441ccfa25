// The packed GEMM against double, on every SIMD target: all remainders of rows, columns and depth, strided rows, slices
// of depth, all types, and nothing written outside y.
#include "ops/simd/packed_gemm.h"

#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

struct Shape {
  std::int64_t rows, columns, depth;
};

std::int64_t padded(std::int64_t columns, const PackedGemmKernels& kernels) { return round_up(columns, kernels.lanes); }

template <class W, class X = W>
void expect_product(const Shape& s, const std::string& target) {
  constexpr bool kHalf = std::is_same_v<W, BFloat16>;
  const PackedGemmKernels kernels = packed_gemm_kernels();
  const std::int64_t x_stride = s.depth + 1, y_stride = s.columns + 3;
  const std::vector<float> x_numbers = random_numbers(s.rows * x_stride + 1, 1);
  const std::vector<float> w_numbers = random_numbers(s.columns * s.depth, 2);
  std::vector<X> x;
  std::vector<W> w;
  for (const float v : x_numbers) x.push_back(convert<X>(v));
  for (const float v : w_numbers) w.push_back(convert<W>(v));
  const AlignedBuffer packed(static_cast<std::size_t>(packed_gemm_elements(kernels, s.columns, s.depth)) * sizeof(W) +
                             64);
  pack_gemm_weight(kernels, view_of(static_cast<const W*>(w.data()), Dims{s.columns, s.depth}),
                   reinterpret_cast<W*>(packed.data()));
  const Guarded bias(random_numbers(padded(s.columns, kernels), 3));
  const Guarded scratch(packed_gemm_scratch_floats(kernels, s.rows, s.columns));
  const X poison = convert<X>(kPoison);
  std::vector<X> y(static_cast<std::size_t>(s.rows * y_stride + 16), poison);
  PackedGemmOf<W, X> gemm{.x = x.data() + 1,
                          .x_stride = x_stride,
                          .rows = s.rows,
                          .depth = s.depth,
                          .weight = reinterpret_cast<const W*>(packed.data()),
                          .columns = s.columns,
                          .bias = s.rows % 2 == 0 ? bias.data() : nullptr,
                          .y = y.data() + 8,
                          .y_stride = y_stride};
  if constexpr (kHalf) {
    gemm.scratch = scratch.data();
    if constexpr (std::is_same_v<X, float>) {
      kernels.multiply_bf16_weights(gemm);
    } else {
      kernels.multiply_bf16(gemm);
    }
    ASSERT_TRUE(scratch.clean_beyond(packed_gemm_scratch_floats(kernels, s.rows, s.columns)));
  } else {
    kernels.multiply(gemm);
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
    const std::int64_t row = (i - 8) / y_stride, column = (i - 8) % y_stride;
    const float got = widen(y[static_cast<std::size_t>(i)]);
    if (i < 8 || row >= s.rows || column >= s.columns) {
      ASSERT_EQ(got, widen(poison)) << target << " wrote at " << i << " of " << s.rows << " x " << s.columns;
      continue;
    }
    double sum = gemm.bias != nullptr ? static_cast<double>(gemm.bias[column]) : 0;
    double magnitude = std::abs(sum);
    for (std::int64_t k = 0; k < s.depth; ++k) {
      const double term = static_cast<double>(widen(gemm.x[row * x_stride + k])) *
                          static_cast<double>(widen(w[static_cast<std::size_t>(column * s.depth + k)]));
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(got, sum, 2e-6 * magnitude + (std::is_same_v<X, BFloat16> ? std::abs(sum) / 256 : 0))
        << target << " " << s.rows << " x " << s.columns << " x " << s.depth << " at " << row << ", " << column;
  }
}

TEST(PackedGemm, EveryRemainderOfRowsColumnsAndDepth) {
  on_every_target([](const std::string& target) {
    const std::int64_t lanes = packed_gemm_kernels().lanes;
    for (std::int64_t rows = 1; rows <= 19; ++rows) {
      for (const std::int64_t columns : {std::int64_t{1}, lanes - 1, lanes, lanes + 1, 2 * lanes, 2 * lanes + 1,
                                         3 * lanes - 1, 3 * lanes, 4 * lanes + 3, 7 * lanes}) {
        if (columns < 1) continue;
        for (const std::int64_t depth : {1, 7, 8, 9, 33}) {
          expect_product<float>({rows, columns, depth}, target);
          expect_product<BFloat16>({rows, columns, depth}, target);
          expect_product<BFloat16, float>({rows, columns, depth}, target);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(PackedGemm, DepthsAroundBlocksAndSlices) {
  on_every_target([](const std::string& target) {
    for (const std::int64_t depth : {kGemmDepthBlock - 1, kGemmDepthBlock, kGemmDepthBlock + 1, 2 * kGemmDepthBlock + 5,
                                     kGemmSlice, kGemmSlice + 1, 2 * kGemmSlice + 130}) {
      for (const std::int64_t rows : {1, 2, 5, 17, 40}) {
        expect_product<float>({rows, 53, depth}, target);
        expect_product<BFloat16>({rows, 53, depth}, target);
        expect_product<BFloat16, float>({rows, 53, depth}, target);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

}  // namespace
}  // namespace headway::testing
