// What the tests of the tile kernels share: distinct random numbers, and arrays that notice a write beside them. Knows
// no kernel.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "headway/tensor.h"
#include "ops/base/numeric.h"
#include "ops/simd/target.h"

namespace headway::testing {

inline constexpr float kPoison = 12345.5f;

/// Standard normal numbers.
inline std::vector<float> random_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) x = normal(engine);
  return numbers;
}

inline std::vector<BFloat16> rounded_numbers(const std::vector<float>& numbers) {
  std::vector<BFloat16> rounded;
  for (const float x : numbers) rounded.push_back(to_bfloat16(x));
  return rounded;
}

/// `count` floats on a cache line, poisoned, with poison before and behind.
class Guarded {
 public:
  explicit Guarded(std::int64_t count)
      : count_(count), buffer_(static_cast<std::size_t>(count + 2 * kGuard) * sizeof(float)) {
    for (std::int64_t i = -kGuard; i < count + kGuard; ++i) data()[i] = kPoison;
  }
  Guarded(const std::vector<float>& values) : Guarded(static_cast<std::int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()) + kGuard; }
  float& operator[](std::int64_t i) const { return data()[i]; }
  /// Whether every float outside [0, used) still is poison.
  bool clean_beyond(std::int64_t used) const {
    for (std::int64_t i = -kGuard; i < count_ + kGuard; ++i) {
      if ((i < 0 || i >= used) && data()[i] != kPoison) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  std::int64_t count_;
  AlignedBuffer buffer_;
};

/// Calls fn(name) with the SIMD target capped to each one that this CPU has.
template <class Fn>
void on_every_target(Fn fn) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    fn(target);
  }
  cap_simd_target("");
}

}  // namespace headway::testing
