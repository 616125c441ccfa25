// A scale as a power of two with its sign, which bf16 numbers take without loss, and the rest. Knows no tensors.
#pragma once

#include <algorithm>
#include <cmath>

namespace headway {

/// scale = power · rest, rest in [1, 2) while |scale| lies between 2^-60 and 2^61: a query times the power is nowhere
/// larger than the scaled query would be. Further powers stay in the rest, so that no query becomes denormal by them.
struct SplitScale {
  float power = 1;
  float rest = 1;
};

inline SplitScale split_scale(float scale) {
  constexpr int kMaxExponent = 60;
  if (scale == 0) return {.power = 0, .rest = 1};  // queries that would overflow by any power give 0
  int exponent = 0;
  std::frexp(scale, &exponent);
  const float one = std::copysign(1.0f, scale);
  const float power = std::ldexp(one, std::clamp(exponent - 1, -kMaxExponent, kMaxExponent));
  return {.power = power, .rest = scale / power};
}

}  // namespace headway
