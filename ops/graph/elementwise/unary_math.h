// What the operators of one operand do to a number, in f32 or f64 or on integers, defined for every input. Knows no
// tensor.
#pragma once

#include <cmath>
#include <numbers>
#include <type_traits>

#include "ops/graph/elementwise/arithmetic.h"

namespace headway::math {

struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return arithmetic::Sub()(T{0}, x);
  }
};
/// The lowest integer wraps to itself.
struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else
      return x < 0 ? Neg()(x) : x;
  }
};
struct Sign {
  template <class T>
  T operator()(T x) const {
    return x > 0 ? T{1} : x < 0 ? static_cast<T>(-1) : x;  // 0 and NaN stay
  }
};
struct Relu {
  template <class T>
  T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
};
struct Exp {
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
};
struct Log {
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T x) const {
    return 1 / x;
  }
};
struct Erf {
  template <class T>
  T operator()(T x) const {
    return std::erf(x);
  }
};
struct Tanh {
  template <class T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Sigmoid {
  template <class T>
  T operator()(T x) const {
    const T e = std::exp(-std::fabs(x));
    return (x < 0 ? e : T{1}) / (1 + e);
  }
};
/// log(1 + e^x) with an exponent that is never positive.
struct Softplus {
  template <class T>
  T operator()(T x) const {
    return std::fmax(x, T{0}) + std::log1p(std::exp(-std::fabs(x)));
  }
};
struct Sin {
  template <class T>
  T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  T operator()(T x) const {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  T operator()(T x) const {
    return std::tan(x);
  }
};
struct Floor {
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};
/// Ties to even, by the rounding mode that programs start with.
struct Round {
  template <class T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};
/// x·Φ(x), by the complement so that nothing cancels left of 0. −inf gives −0, the limit, where the product would be
/// NaN.
struct Gelu {
  template <class T>
  T operator()(T x) const {
    if (std::isinf(x)) return x > 0 ? x : -T{0};
    return x * std::erfc(-x * std::numbers::sqrt2_v<T> / 2) / 2;
  }
};
struct GeluTanh {
  template <class T>
  T operator()(T x) const {
    if (std::isinf(x)) return x > 0 ? x : -T{0};
    const T two_u = 2 * std::sqrt(2 / std::numbers::pi_v<T>) * x * (1 + static_cast<T>(0.044715) * x * x);
    return x * Sigmoid()(two_u);
  }
};

}  // namespace headway::math
