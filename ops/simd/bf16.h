// Rows of bf16 to f32 and back, vectorised for the best target of this CPU.
#pragma once

#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// Kernels of one SIMD target, resolved once at plan time. All targets give the same bits.
struct Bf16Kernels {
  const char* target;
  /// to[i] = from[i], exactly. Not in place.
  void (*widen)(const BFloat16* from, float* to, std::int64_t n);
  /// Rounded to nearest, ties to even; NaN stays NaN. Not in place.
  void (*narrow)(const float* from, BFloat16* to, std::int64_t n);
  /// to[i] = scale · from[i], rounded once. Not in place.
  void (*scale)(const BFloat16* from, float scale, BFloat16* to, std::int64_t n);
};

/// Of the current target (target.h).
Bf16Kernels bf16_kernels();

}  // namespace headway
