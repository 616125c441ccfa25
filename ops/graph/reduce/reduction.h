// What the reductions do with one element after the other. Sums of floats run in f64: a long row of a narrower type
// then rounds once, and squares of f32 do not overflow. Integers wrap around. Knows no tensor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/base/numeric.h"

namespace headway::reduction {

/// What an element type is reduced in.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

template <class T>
Accumulator<T> accumulated(T x) {
  return static_cast<Accumulator<T>>(widen(x));
}

/// Overflow of integers goes through unsigned numbers, where it is defined.
template <class A>
A plus(A a, A b) {
  if constexpr (std::is_floating_point_v<A>)
    return a + b;
  else
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class A>
A times(A a, A b) {
  if constexpr (std::is_floating_point_v<A>)
    return a * b;
  else
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class A>
A magnitude(A a) {
  if constexpr (std::is_floating_point_v<A>)
    return std::fabs(a);
  else
    return a < 0 ? static_cast<A>(0 - static_cast<std::uint64_t>(a)) : a;
}

/// Every reduction: add an element, join what another one has seen, give the result over n elements.
template <class A>
struct Sum {
  A sum{};
  void add(A x) { sum = plus(sum, x); }
  void join(const Sum& other) { sum = plus(sum, other.sum); }
  A result(std::int64_t) const { return sum; }
};
template <class A>
struct Mean : Sum<A> {
  /// Of no elements: NaN, or 0 of integers.
  A result(std::int64_t n) const {
    if constexpr (std::is_floating_point_v<A>)
      return this->sum / static_cast<A>(n);
    else
      return n == 0 ? A{} : this->sum / n;
  }
};
template <class A>
struct Product {
  A product{1};
  void add(A x) { product = times(product, x); }
  void join(const Product& other) { product = times(product, other.product); }
  A result(std::int64_t) const { return product; }
};
/// A NaN stays; of no elements the result is the lowest value of the type.
template <class A>
struct Max {
  A max = std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  void add(A x) { max = x > max || x != x ? x : max; }
  void join(const Max& other) { add(other.max); }
  A result(std::int64_t) const { return max; }
};
template <class A>
struct Min {
  A min = std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  void add(A x) { min = x < min || x != x ? x : min; }
  void join(const Min& other) { add(other.min); }
  A result(std::int64_t) const { return min; }
};
template <class A>
struct SumSquare : Sum<A> {
  void add(A x) { Sum<A>::add(times(x, x)); }
};
template <class A>
struct L1 : Sum<A> {
  void add(A x) { Sum<A>::add(magnitude(x)); }
};
template <class A>
struct L2 : SumSquare<A> {
  A result(std::int64_t) const { return std::sqrt(this->sum); }
};
template <class A>
struct LogSum : Sum<A> {
  A result(std::int64_t) const { return std::log(this->sum); }
};
/// The largest |element|; a NaN stays.
template <class A>
struct MaxMagnitude : Max<A> {
  void add(A x) { Max<A>::add(magnitude(x)); }
};
/// The same of elements whose squares the accumulator does not hold: times a power of two that takes the largest of
/// them, which the constructor is given, to about 1.
template <class A>
struct ScaledL2 : SumSquare<A> {
  using Pivot = MaxMagnitude<A>;
  int exponent = 0;
  A scale{1};
  ScaledL2() = default;
  ScaledL2(A largest, int) {
    if (!std::isfinite(largest) || largest == 0) return;
    exponent =
        std::clamp(std::ilogb(largest), std::numeric_limits<A>::min_exponent, 0 - std::numeric_limits<A>::min_exponent);
    scale = std::ldexp(A{1}, -exponent);
  }
  void add(A x) { SumSquare<A>::add(x * scale); }
  A result(std::int64_t) const { return std::ldexp(std::sqrt(this->sum), exponent); }
};
/// Around the largest element, which the constructor is given, so that nothing overflows.
template <class A>
struct LogSumExp {
  using Pivot = Max<A>;
  A max{}, sum{};
  LogSumExp() = default;
  LogSumExp(A largest, int) : max(std::isinf(largest) && largest < 0 ? A{} : largest) {}
  void add(A x) { sum += x == max ? A{1} : std::exp(x - max); }
  void join(const LogSumExp& other) { sum += other.sum; }
  A result(std::int64_t) const { return std::log(sum) + max; }
};

/// Blocks joined like the digits of a binary counter, so that the rounding of a sum grows with the logarithm of their
/// number.
template <class R>
class Pairwise {
 public:
  explicit Pairwise(const R& empty) : empty_(empty) {}
  void take(R block) {
    int level = 0;
    for (; level < kLevels - 1 && (blocks_ >> level & 1) != 0; ++level) {
      levels_[level].join(block);
      block = levels_[level];
    }
    if (level == kLevels - 1 && (blocks_ >> level) != 0) {
      levels_[level].join(block);
    } else {
      levels_[level] = block;
    }
    ++blocks_;
  }
  R total() const {
    R all = empty_;
    for (int level = 0; level < kLevels; ++level) {
      const bool used = level == kLevels - 1 ? (blocks_ >> level) != 0 : (blocks_ >> level & 1) != 0;
      if (used) all.join(levels_[level]);
    }
    return all;
  }

 private:
  static constexpr int kLevels = 24;  // beyond 2^23 blocks, one after the other
  R empty_;
  R levels_[kLevels];
  std::int64_t blocks_ = 0;
};

}  // namespace headway::reduction
