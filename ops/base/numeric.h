// Numbers of every element type: how the two half formats are read and written, in which type arithmetic on each is
// done, conversion without undefined cases, and a visitor over the types. Knows neither tensors nor operators.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "headway/tensor.h"

namespace headway {

inline float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

/// Exact: every f16 is an f32. The magnitude is moved to where an f32 has it and scaled by the difference of the
/// exponents' biases, which also makes denormals normal.
inline float widen(Float16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x.bits & 0x7FFFu) << 13;
  if (magnitude >= 0x0F800000u) return std::bit_cast<float>(sign | 0x70000000u | magnitude);  // inf and NaN
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

template <class T>
requires std::is_arithmetic_v<T>
inline T widen(T x) { return x; }

/// Nearest, ties to even; NaN stays NaN.
inline BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

/// Nearest, ties to even; NaN stays NaN, what is too large becomes infinite.
inline Float16 to_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u;
  } else if (magnitude >= 0x477FF000u) {  // 65520, half way to what would follow the largest f16
    half = 0x7C00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24 in the low bits
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  } else {
    half = (magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

/// x rounded to odd: x itself where it is an f32, else the neighbouring f32 whose last bit is set. Rounding the result
/// to a narrower type gives the same as rounding x to that type directly.
inline float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto exact = static_cast<double>(nearest);
  if (exact == x || std::isnan(x) || std::isinf(x)) return nearest;
  if (std::isinf(nearest)) return std::copysign(std::numeric_limits<float>::max(), nearest);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((bits & 1u) != 0) return nearest;
  return std::bit_cast<float>(std::abs(exact) < std::abs(x) ? bits + 1u : bits - 1u);
}

/// Whether none of `count` numbers, `stride` apart, is NaN or infinite.
template <class T>
bool all_finite(const T* x, std::int64_t count, std::int64_t stride = 1) {
  // Exponents of all ones are NaN or infinity; adding one carries them into the sign. Integers, because a sum of floats
  // would have to be added in order.
  std::uint32_t carried = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    carried |= (std::bit_cast<std::uint32_t>(widen(x[i * stride])) & 0x7FFFFFFFu) + 0x00800000u;
  }
  return carried < 0x80000000u;
}

inline constexpr bool is_float(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64 || type == DataType::kF16 || type == DataType::kBF16;
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFloat = kIsHalf<T> || std::is_floating_point_v<T>;

/// What arithmetic on T is done in: f32 for the halves.
template <class T>
using ComputeType = std::conditional_t<kIsHalf<T>, float, T>;

/// A number as element type `To`. Integers wrap, floats round to nearest even; a float outside an integer type's range
/// becomes that type's nearest value and NaN becomes 0, so that no input is undefined.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return convert<To>(widen(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (kIsHalf<To>) {
    float narrow;
    if constexpr (std::is_same_v<From, float>) {
      narrow = x;
    } else {
      narrow = round_to_odd(static_cast<double>(x));
    }
    if constexpr (std::is_same_v<To, Float16>) {
      return to_float16(narrow);
    } else {
      return to_bfloat16(narrow);
    }
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return To{0};
    // 2^digits is a float of either type; max() itself need not be one.
    if (x >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// Calls fn with a value of the element type that `type` names.
template <class Fn>
decltype(auto) visit_type(DataType type, Fn&& fn) {
  switch (type) {
    case DataType::kF64:
      return fn(double{});
    case DataType::kF16:
      return fn(Float16{});
    case DataType::kBF16:
      return fn(BFloat16{});
    case DataType::kI8:
      return fn(std::int8_t{});
    case DataType::kU8:
      return fn(std::uint8_t{});
    case DataType::kI32:
      return fn(std::int32_t{});
    case DataType::kI64:
      return fn(std::int64_t{});
    case DataType::kBool:
      return fn(bool{});
    case DataType::kF32:
      break;
  }
  return fn(float{});
}

}  // namespace headway
