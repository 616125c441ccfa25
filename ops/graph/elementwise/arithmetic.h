// What the arithmetic operators do to two numbers, defined for every input: integers wrap around, a division by 0 gives
// 0, a NaN stays. Knows no tensor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace headway::arithmetic {

/// Integers go through unsigned numbers, where overflow is defined, and are cut back to their width.
template <class T, class F>
T wrapped(T a, T b, F f) {
  return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return wrapped(a, b, [](std::uint64_t x, std::uint64_t y) { return x + y; });
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return wrapped(a, b, [](std::uint64_t x, std::uint64_t y) { return x - y; });
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return wrapped(a, b, [](std::uint64_t x, std::uint64_t y) { return x * y; });
  }
};
/// Towards zero; the lowest integer over −1 wraps to itself.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else if (b == 0)
      return 0;
    else if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub()(T{0}, a);
    else
      return static_cast<T>(a / b);
  }
};
/// The remainder has the sign of the divisor.
struct FloorMod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
  }
};
/// The remainder has the sign of the dividend.
struct TruncatedMod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(a, b);
    else if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1)))
      return 0;
    else
      return static_cast<T>(a % b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// By squaring, wrapping around. A negative exponent leaves something only of 1 and −1.
template <class T>
T integer_power(T base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return std::is_signed_v<T> && base == static_cast<T>(-1) ? static_cast<T>(exponent % 2 != 0 ? -1 : 1) : T{0};
  }
  std::uint64_t result = 1;
  for (auto factor = static_cast<std::uint64_t>(base); exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

}  // namespace headway::arithmetic
