// A scale as a signed power of two, by which bf16 numbers are scaled exactly, times the rest. Knows no tensors.
#pragma once

#include <algorithm>
#include <cmath>

namespace headway {

/// scale = power · rest, with rest in [1, 2) for |scale| from 2^-60 to 2^61, so that |query · power| ≤ |query · scale|.
/// Powers beyond that stay in the rest: they would make queries denormal.
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
