// Small products against double precision, and a cache that stays as small as it was told to.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <thread>
#include <vector>

#include "headway/numerical_bound.h"
#include "ops/base/numeric.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/matmul/matmul_bound.h"
#include "tests/runtime/error_of.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

TileMatmulSpec random_spec(Random& random, std::int64_t most) {
  TileMatmulSpec s{};
  s.rows = random.between(1, most);
  s.columns = random.between(1, most);
  s.depth = random.between(1, most);
  s.transpose_b = random.chance(0.5);
  s.accumulate = random.chance(0.3);
  s.a_stride = s.depth + random.below(2) * 3;
  s.b_stride = (s.transpose_b ? s.depth : s.columns) + random.below(2) * 16;
  s.c_stride = s.columns + random.below(2) * 7;
  return s;
}

/// As bf16; `values` become what is left of them.
std::vector<BFloat16> rounded(std::vector<float>* values) {
  std::vector<BFloat16> result;
  for (float& v : *values) {
    result.push_back(to_bfloat16(v));
    v = widen(result.back());
  }
  return result;
}

/// Runs the product on random data; the largest ratio of an error to its bound.
double run_and_compare(const TileMatmulCache& cache, const TileMatmulSpec& s, Random& random) {
  const auto filled = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = random.normal();
    return values;
  };
  std::vector<float> a = filled(s.rows * s.a_stride);
  std::vector<float> b = filled((s.transpose_b ? s.columns : s.depth) * s.b_stride);
  const bool bf16 = s.type == DataType::kBF16;
  const std::vector<BFloat16> a_rounded = bf16 ? rounded(&a) : std::vector<BFloat16>();
  const std::vector<BFloat16> b_rounded = bf16 ? rounded(&b) : std::vector<BFloat16>();
  std::vector<float> c = filled(s.rows * s.c_stride);
  const std::vector<float> before = c;
  const AlignedBuffer scratch(cache.scratch_bytes(s));
  const void* const a_data = bf16 ? static_cast<const void*>(a_rounded.data()) : a.data();
  const void* const b_data = bf16 ? static_cast<const void*>(b_rounded.data()) : b.data();
  cache.run(s, a_data, b_data, c.data(), scratch.data(), scratch.size_bytes());
  double worst = 0;
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.c_stride; ++j) {
      const auto at = static_cast<std::size_t>(i * s.c_stride + j);
      if (j >= s.columns) {
        EXPECT_EQ(c[at], before[at]) << "gap";
        continue;
      }
      double sum = s.accumulate ? before[at] : 0;
      double magnitude = std::abs(sum);
      for (std::int64_t k = 0; k < s.depth; ++k) {
        const std::int64_t b_at = s.transpose_b ? j * s.b_stride + k : k * s.b_stride + j;
        const double term = static_cast<double>(a[static_cast<std::size_t>(i * s.a_stride + k)]) *
                            static_cast<double>(b[static_cast<std::size_t>(b_at)]);
        sum += term;
        magnitude += std::abs(term);
      }
      const double error = std::abs(c[at] - sum);
      EXPECT_FALSE(std::isnan(error));
      EXPECT_TRUE(magnitude > 0 || error == 0);
      if (magnitude > 0) worst = std::max(worst, error / (kMatmulBound * numerical_bound::kEpsilon * magnitude));
    }
  }
  return worst;
}

/// Depths and columns of whole tiles, as attention has them; the sums are as exact as those of f32.
TEST(TileMatmulCache, MatchesDoubleInBf16) {
  if (!onednn::plain_bf16_refusal().empty()) GTEST_SKIP() << onednn::plain_bf16_refusal();
  Random random(2);
  const TileMatmulCache cache(8);
  for (int i = 0; i < 60; ++i) {
    TileMatmulSpec spec = random_spec(random, 70);
    spec.type = DataType::kBF16;
    spec.depth = 32 * random.between(1, 8);
    spec.columns = 32 * random.between(1, 8);
    spec.a_stride = spec.depth;
    spec.b_stride = (spec.transpose_b ? spec.depth : spec.columns) + random.below(3) * 16;
    spec.c_stride = spec.columns;
    EXPECT_LE(run_and_compare(cache, spec, random), 1) << spec.rows << " x " << spec.columns << " x " << spec.depth;
  }
}

TEST(TileMatmulCache, MatchesDouble) {
  Random random(1);
  const TileMatmulCache cache(8);
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const TileMatmulSpec spec = random_spec(random, 70);
    const double ratio = run_and_compare(cache, spec, random);
    EXPECT_LE(ratio, 1) << spec.rows << " x " << spec.columns << " x " << spec.depth;
    worst = std::max(worst, ratio);
  }
  EXPECT_EQ(cache.size(), 8u);
  std::cout << "worst error of TileMatmulCache: " << worst << " of the bound\n";
}

TEST(TileMatmulCache, UnitAndEmptyDims) {
  Random random(2);
  const TileMatmulCache cache(64);
  for (const std::int64_t m : {0, 1, 3}) {
    for (const std::int64_t n : {0, 1, 5}) {
      for (const std::int64_t k : {0, 1, 4}) {
        for (const bool transpose : {false, true}) {
          for (const bool accumulate : {false, true}) {
            const TileMatmulSpec s{m, n, k, k + 9, (transpose ? k : n) + 33, n + 5, transpose, accumulate};
            EXPECT_LE(run_and_compare(cache, s, random), 1) << m << " x " << n << " x " << k;
          }
        }
      }
    }
  }
}

TEST(TileMatmulCache, StridesOfUnitDimsShareAMatmul) {
  const TileMatmulCache cache(8);
  cache.scratch_bytes({1, 8, 4, 4, 8, 8});
  cache.scratch_bytes({1, 8, 4, 100, 8, 77});
  EXPECT_EQ(cache.size(), 1u);
}

TEST(TileMatmulCache, AHitAllocatesNothing) {
  const TileMatmulCache cache(4);
  const TileMatmulSpec s{8, 16, 32, 32, 16, 16};
  const std::vector<float> a(8 * 32, 1), b(32 * 16, 1);
  std::vector<float> c(8 * 16);
  const AlignedBuffer scratch(cache.scratch_bytes(s));
  // The first product of a process lets oneDNN set itself up.
  cache.run(s, a.data(), b.data(), c.data(), scratch.data(), scratch.size_bytes());
  const AllocationCounter counter;
  cache.run(s, a.data(), b.data(), c.data(), scratch.data(), scratch.size_bytes());
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(c[0], 32);
}

TEST(TileMatmulCache, ManyThreadsOnASmallCache) {
  const TileMatmulCache cache(3);
  std::vector<std::thread> team;
  for (int t = 0; t < 8; ++t) {
    team.emplace_back([&cache, t] {
      Random random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 40; ++i) {
        const std::int64_t n = random.between(1, 6);
        EXPECT_LE(run_and_compare(cache, {n, n, n, n, n, n}, random), 1);
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_LE(cache.size(), 3u);
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

/// What 3000 more shapes add, once the 1024 primitives that oneDNN keeps for the whole process are in use.
std::int64_t growth_of_cache(std::size_t capacity) {
  Random random(3);
  const TileMatmulCache cache(capacity);
  const auto use = [&](int count) {
    for (int i = 0; i < count; ++i) cache.scratch_bytes(random_spec(random, 64));
  };
  use(3000);
  const std::int64_t warm = resident_bytes();
  use(3000);
  EXPECT_LE(cache.size(), capacity);
  return resident_bytes() - warm;
}

/// Beside a cache that forgets nothing: how large a primitive is, and what the allocator keeps, differ by version.
TEST(TileMatmulCache, ThousandsOfShapesKeepMemoryFlat) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the quarantine of ASan keeps what is freed";
#endif
  const std::int64_t bounded = growth_of_cache(16);
  const std::int64_t boundless = growth_of_cache(100000);
  std::cout << "3000 shapes more: " << bounded / 1024 << " KiB with 16 kept, " << boundless / 1024
            << " KiB with all kept\n";
  EXPECT_LT(bounded, boundless / 4);
}

TEST(TileMatmulCache, NamesWhatIsWrong) {
  const TileMatmulCache cache(4);
  expect_contains(error_of([&] { cache.scratch_bytes({2, 2, 4, 3, 2, 2}); }), "a_stride is 3");
  expect_contains(error_of([&] { cache.scratch_bytes({2, 5, 4, 4, 2, 5}); }), "b_stride is 2");
  expect_contains(error_of([&] { cache.scratch_bytes({2, 5, 4, 4, 5, 2}); }), "c_stride is 2");
  expect_contains(error_of([] { TileMatmulCache none(0); }), "capacity is 0");
}

}  // namespace
}  // namespace headway::testing
