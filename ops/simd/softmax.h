// Row softmax and exp, vectorised for the best target of this CPU. The template that other kernels copy: plain
// declaration here, width-agnostic body in softmax-inl.h, dispatch in softmax.cc.
#pragma once

#include <cstdint>

namespace headway {

/// Kernels of one SIMD target, resolved once at plan time.
struct SoftmaxKernels {
  /// In place: scores[i] = exp(scores[i] − max) / sum over [0, n). −inf gives exactly 0; NaN gives NaN in all; a row
  /// of nothing but −inf gives NaN. |relative error| ≤ 1e-6.
  void (*softmax_row)(float* scores, std::int64_t n);
  /// out[i] = exp(x[i]): relative error ≤ 4e-7 on [−20, 0], 0 below −87.3, NaN gives NaN. x ≤ 88. May be in place.
  void (*exp)(const float* x, float* out, std::int64_t n);
  /// In place: x[i] = softcap·tanh(x[i] / softcap).
  void (*softcap_row)(float* x, float softcap, std::int64_t n);
};
SoftmaxKernels softmax_kernels();

}  // namespace headway
