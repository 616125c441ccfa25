// Rows of every float type to f32 and back, gathered, rotated; and the folding of softmax states, by rows and by
// panels.
#include "ops/simd/cache_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ops/simd/softmax_state.h"
#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(CacheRows, EveryF16IsWidenedExactly) {
  std::vector<Float16> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  on_every_target([&](const std::string& target) {
    cache_row_kernels().f16.widen(reinterpret_cast<const std::byte*>(all.data()), wide.data(), 65536);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float expected = widen(all[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i])) << target << " " << i;
      } else {
        ASSERT_EQ(bits_of(wide[i]), bits_of(expected)) << target << " " << i;
      }
    }
  });
}

TEST(CacheRows, F16IsRoundedToNearestEven) {
  // Around every f16: itself, its neighbours in f32, and the middle to the next one.
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const float x = widen(Float16{static_cast<std::uint16_t>(i)});
    const float next = widen(Float16{static_cast<std::uint16_t>(i + 1)});
    const float middle = x / 2 + next / 2;
    for (const float y :
         {x, std::nextafter(x, 1e9f), middle, std::nextafter(middle, 1e9f), std::nextafter(middle, -1e9f)}) {
      numbers.push_back(y);
    }
  }
  for (const float y : {65519.9f, 65520.0f, 1e30f, -1e30f, 1e-30f, -1e-30f, 3e-8f, 2.98023224e-08f})
    numbers.push_back(y);
  std::vector<Float16> narrow(numbers.size());
  on_every_target([&](const std::string& target) {
    cache_row_kernels().f16.narrow(numbers.data(), 1, reinterpret_cast<std::byte*>(narrow.data()),
                                   static_cast<std::int64_t>(numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::isnan(numbers[i])) {
        ASSERT_TRUE(std::isnan(widen(narrow[i]))) << target;
      } else {
        ASSERT_EQ(narrow[i].bits, to_float16(numbers[i]).bits) << target << ": " << numbers[i];
      }
    }
  });
}

TEST(CacheRows, RowsAreGathered) {
  on_every_target([&](const std::string& target) {
    for (const std::int64_t columns : {1, 5, 8, 24, 33}) {
      const std::vector<float> data = random_numbers(7 * columns, 3);
      std::vector<const std::byte*> rows;
      for (const int r : {4, 0, 6, 6, 1}) rows.push_back(reinterpret_cast<const std::byte*>(data.data() + r * columns));
      const std::int64_t stride = columns + 3;
      const Guarded dense(5 * stride);
      cache_row_kernels().f32.gather({rows.data(), 5, columns, dense.data(), stride});
      for (std::int64_t r = 0; r < 5; ++r) {
        for (std::int64_t c = 0; c < stride; ++c) {
          const float* const row = reinterpret_cast<const float*>(rows[static_cast<std::size_t>(r)]);
          ASSERT_EQ(dense[r * stride + c], c < columns ? row[c] : kPoison) << target;
        }
      }
      EXPECT_TRUE(dense.clean_beyond(5 * stride));
    }
  });
}

TEST(CacheRows, PairsAreRotatedInBothForms) {
  on_every_target([&](const std::string& target) {
    for (std::int64_t n = 0; n < 40; ++n) {
      const std::vector<float> x = random_numbers(2 * n, 5), angles = random_numbers(n, 6);
      std::vector<float> cos, sin;
      for (const float a : angles) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
      for (const bool interleaved : {false, true}) {
        const Guarded turned(x);
        const CacheRowKernels kernels = cache_row_kernels();
        (interleaved ? kernels.rotate_interleaved : kernels.rotate_half)({turned.data(), cos.data(), sin.data(), n});
        for (std::int64_t k = 0; k < n; ++k) {
          const auto at = static_cast<std::size_t>(k);
          const std::int64_t first = interleaved ? 2 * k : k, second = interleaved ? 2 * k + 1 : k + n;
          const double a = x[static_cast<std::size_t>(first)], b = x[static_cast<std::size_t>(second)];
          ASSERT_NEAR(turned[first], a * cos[at] - b * sin[at], 1e-6) << target << " " << n;
          ASSERT_NEAR(turned[second], b * cos[at] + a * sin[at], 1e-6) << target << " " << n;
        }
        EXPECT_TRUE(turned.clean_beyond(2 * n));
      }
    }
  });
}

TEST(SoftmaxStates, FoldWithTheSameBitsByRowsAndPanels) {
  on_every_target([&](const std::string& target) {
    const std::int64_t lanes = 2 * simd_lanes(), columns = 11;
    const Guarded maxima(random_numbers(2 * lanes, 1)), sums(random_numbers(2 * lanes, 2)), live(2 * lanes);
    const Guarded contexts(random_numbers(2 * lanes * columns, 3));
    for (std::int64_t i = 0; i < 2 * lanes; ++i) live[i] = static_cast<float>(i % 3 == 0);
    maxima[1] = std::numeric_limits<float>::lowest();  // a state without keys on the left, and one on the right
    maxima[lanes + 2] = std::numeric_limits<float>::lowest();
    for (std::int64_t c = 0; c < columns; ++c) contexts[c * lanes + 1] = contexts[(columns + c) * lanes + 2] = 0;
    sums[1] = sums[lanes + 2] = live[1] = live[lanes + 2] = 0;
    live[2] = live[lanes + 1] = 1;
    // A hidden value that is NaN leaves the context of such a state one.
    contexts[3 * lanes + 1] = contexts[(columns + 3) * lanes + 2] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> before(contexts.data(), contexts.data() + 2 * lanes * columns);
    // Rows first, from copies.
    std::vector<float> row_results;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      float maximum = maxima[lane], sum = sums[lane], alive = live[lane];
      std::vector<float> left, right;
      for (std::int64_t c = 0; c < columns; ++c) left.push_back(contexts[c * lanes + lane]);
      for (std::int64_t c = 0; c < columns; ++c) right.push_back(contexts[(columns + c) * lanes + lane]);
      softmax_state_kernels().fold_row({1, columns, &maximum, &sum, &alive, left.data(), &maxima[lanes + lane],
                                        &sums[lanes + lane], &live[lanes + lane], right.data()});
      row_results.insert(row_results.end(), left.begin(), left.end());
      row_results.insert(row_results.end(), {maximum, sum, alive});
    }
    softmax_state_kernels().fold_panel({lanes, columns, maxima.data(), sums.data(), live.data(), contexts.data(),
                                        maxima.data() + lanes, sums.data() + lanes, live.data() + lanes,
                                        contexts.data() + lanes * columns});
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const float* const row = row_results.data() + lane * (columns + 3);
      for (std::int64_t c = 0; c < columns; ++c) {
        const float got = contexts[c * lanes + lane];
        ASSERT_EQ(bits_of(got), bits_of(row[c])) << target << ", lane " << lane;
        // A state without keys changes no bit of the other.
        const std::int64_t other = lane == 1 ? (columns + c) * lanes + 1 : c * lanes + 2;
        ASSERT_TRUE((lane != 1 && lane != 2) || got == before[static_cast<std::size_t>(other)]) << target;
      }
      ASSERT_EQ(bits_of(maxima[lane]), bits_of(row[columns])) << target;
      ASSERT_EQ(bits_of(sums[lane]), bits_of(row[columns + 1])) << target;
      ASSERT_EQ(live[lane], row[columns + 2]) << target;
    }
  });
}

}  // namespace
}  // namespace headway::testing
