// bf16 to f32 and back on every SIMD target: every pattern up, every rounding down, NaN, and no element too many.
#include "ops/simd/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/base/numeric.h"
#include "ops/simd/target.h"

namespace headway::testing {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::vector<BFloat16> narrowed(const std::vector<float>& x) {
  std::vector<BFloat16> y(x.size());
  bf16_kernels().narrow(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}

/// Calls use() under every SIMD target of this CPU.
template <class Use>
void with_targets(Use use) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    SCOPED_TRACE(target);
    use();
  }
  cap_simd_target("");
}

TEST(Bf16, EveryPatternWidensExactlyAndComesBack) {
  std::vector<BFloat16> all;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) all.push_back({static_cast<std::uint16_t>(bits)});
  with_targets([&] {
    std::vector<float> wide(all.size());
    bf16_kernels().widen(all.data(), wide.data(), static_cast<std::int64_t>(all.size()));
    const std::vector<BFloat16> back = narrowed(wide);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[bits]), bits << 16);
      const std::uint32_t quiet = std::isnan(wide[bits]) ? bits | 0x40u : bits;
      ASSERT_EQ(back[bits].bits, quiet) << bits;
    }
  });
}

/// Between every two neighbours: just above the lower one, below, at and above the middle, just below the upper one.
TEST(Bf16, RoundsToNearestAndTiesToEven) {
  std::vector<float> x;
  std::vector<std::uint16_t> expected;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    if ((upper & 0x7F80u) == 0x7F80u) continue;             // infinities and NaN
    const auto up = static_cast<std::uint16_t>(upper + 1);  // beyond the largest number lies infinity
    const auto down = static_cast<std::uint16_t>(upper);
    const std::uint16_t even = upper % 2 == 0 ? down : up;
    for (const auto& [lower, rounded] : {std::pair<std::uint32_t, std::uint16_t>{0, down},
                                         {1, down},
                                         {0x7FFF, down},
                                         {0x8000, even},
                                         {0x8001, up},
                                         {0xFFFF, up}}) {
      x.push_back(from_bits(upper << 16 | lower));
      expected.push_back(rounded);
    }
  }
  with_targets([&] {
    const std::vector<BFloat16> y = narrowed(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, expected[i]) << x[i];
      ASSERT_EQ(y[i].bits, to_bfloat16(x[i]).bits) << x[i];
    }
  });
}

TEST(Bf16, NanStaysNanWithItsSign) {
  const std::vector<float> x = {from_bits(0x7F800001), from_bits(0x7FFFFFFF), from_bits(0xFF800001),
                                from_bits(0xFFFFFFFF), from_bits(0x7FC00000), from_bits(0x7F80FFFF),
                                from_bits(0x7FBFFFFF), from_bits(0xFFFF8000)};
  with_targets([&] {
    const std::vector<BFloat16> y = narrowed(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(std::isnan(widen(y[i]))) << i;
      EXPECT_EQ(std::signbit(widen(y[i])), std::signbit(x[i])) << i;
    }
  });
}

TEST(Bf16, ScalesWithOneRounding) {
  std::vector<BFloat16> x;
  for (std::uint32_t bits = 0; bits < 65536; bits += 7) x.push_back({static_cast<std::uint16_t>(bits)});
  with_targets([&] {
    for (const float scale : {1.0f, 0.25f, -0.3f, 0.0f}) {
      std::vector<BFloat16> y(x.size());
      bf16_kernels().scale(x.data(), scale, y.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float expected = scale * widen(x[i]);
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(widen(y[i])) : y[i].bits == to_bfloat16(expected).bits)
            << widen(x[i]) << " times " << scale;
      }
    }
  });
}

/// Lengths around every vector, from and to odd places; neighbours stay as they were.
TEST(Bf16, EveryLengthAndNothingBeyondIt) {
  with_targets([&] {
    for (std::int64_t n = 0; n <= 67; ++n) {
      for (const std::size_t start : {1u, 3u}) {
        std::vector<BFloat16> half(80, BFloat16{0x1234});
        std::vector<float> wide(80, 7.0f);
        for (std::int64_t i = 0; i < n; ++i) wide[start + static_cast<std::size_t>(i)] = static_cast<float>(i) + 0.5f;
        bf16_kernels().narrow(wide.data() + start, half.data() + start, n);
        std::vector<float> again(80, 9.0f);
        bf16_kernels().widen(half.data() + start, again.data() + start, n);
        for (std::size_t i = 0; i < 80; ++i) {
          const bool inside = i >= start && i < start + static_cast<std::size_t>(n);
          ASSERT_EQ(half[i].bits, inside ? to_bfloat16(wide[i]).bits : 0x1234) << n << " " << i;
          ASSERT_EQ(again[i], inside ? wide[i] : 9.0f) << n << " " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace headway::testing
