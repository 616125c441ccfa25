// Normalisation of one row of floats, vectorised for the best target of this CPU. Knows no tensor.
#pragma once

#include <cstdint>

namespace headway {

/// One row of n floats; `y` may be `x`. `scale` and `bias` have n floats or are null.
struct NormRow {
  const float* x;
  float* y;
  const float* scale;
  const float* bias;
  std::int64_t n;
  float epsilon;
};
/// What the row was normalised with.
struct NormMoments {
  float mean;         ///< 0 for the root mean square
  float inverse_std;  ///< 1 / sqrt(variance + epsilon), or of the mean square
};

/// Kernels of one SIMD target, resolved once at plan time. Sums run in f32 on as many lanes as the target has; the
/// variance is taken around the mean. NaN or inf anywhere in a row gives NaN in it.
struct NormKernels {
  NormMoments (*layer_norm)(const NormRow& row);  ///< y = (x − mean)·inverse_std·scale + bias
  NormMoments (*rms_norm)(const NormRow& row);    ///< y = x·inverse_std·scale + bias
  float (*sum)(const float* x, std::int64_t n);
};

/// Of the current target (target.h).
NormKernels norm_kernels();

}  // namespace headway
