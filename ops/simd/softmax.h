// Row softmax and exp, vectorised for the best target of this CPU. The template that other kernels copy: plain
// declaration here, width-agnostic body in softmax-inl.h, dispatch in softmax.cc.
#pragma once

#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// What a row of scores was made probabilities by: exp(score − max) / sum.
struct RowSum {
  float max;
  float sum;
};

/// Kernels of one SIMD target, resolved once at plan time.
struct SoftmaxKernels {
  /// In place: scores[i] = exp(scores[i] − max) / sum over [0, n). −inf gives exactly 0; NaN gives NaN in all; a row
  /// of nothing but −inf gives NaN. Relative error ≤ 1e-6.
  RowSum (*softmax_row)(float* scores, std::int64_t n);
  /// In place: scores[i] = exp(scores[i] − max)·reciprocal_sum, the second half of a softmax whose maximum and sum are
  /// known already.
  void (*normalize_row)(float* scores, std::int64_t n, float max, float reciprocal_sum);
  /// out[i] = max[i] + ln(sum[i]), may be in place. −inf where the sum is 0, NaN where it is NaN. Absolute error at
  /// most 1.2e-7·(1 + |ln sum|) and half a unit in the last place of the result.
  void (*log_sum_exp)(const float* max, const float* sum, float* out, std::int64_t n);
  /// out[i] = exp(x[i]), x ≤ 88, may be in place. Relative error ≤ 2.6e-7 on [−20, 0]; 0 below −87; NaN gives NaN.
  void (*exp)(const float* x, float* out, std::int64_t n);
  /// In place: x[i] = softcap·tanh(x[i] / softcap). Relative error ≤ 6e-7.
  void (*softcap_row)(float* x, float softcap, std::int64_t n);
  /// The largest of `so_far` and x[i]; NaN is passed over.
  float (*row_max)(const float* x, std::int64_t n, float so_far);
  /// probs[i] = exp(scale·(x[i] − max)), rounded to bf16, where scale > 0 and no x[i] is above `max`; returns their
  /// sum before the rounding. NaN stays NaN in both.
  float (*exp_to_bf16)(const float* x, std::int64_t n, float scale, float max, BFloat16* probs);
};

/// Of the current target (target.h).
SoftmaxKernels softmax_kernels();

}  // namespace headway
