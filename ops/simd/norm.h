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

/// Kernels of one SIMD target, resolved once at plan time. With z = (x − mean)/std exact:
///   |y − exact| ≤ ε·|z·scale|·(40 + n/512) + 2·ε·|y|, ε = 2^−24, however far from 0 the row lies
/// (n/512 for one lane, and less by as many as there are), plus ε·max|x − x[0]|/std·(4 + n/4096)·|scale|, which matters
/// only where the first element lies far from all others. Measured: within 8·ε·(1 + |z·scale|) up to n = 32768. A
/// constant row gives exactly 0 times scale plus bias. Squares that leave the range of f32 are taken in f64. NaN or inf
/// anywhere in a row gives NaN in all of it, but in rms_norm inf gives NaN in its place and 0 elsewhere.
struct NormKernels {
  NormMoments (*layer_norm)(const NormRow& row);  ///< y = (x − mean)·inverse_std·scale + bias
  NormMoments (*rms_norm)(const NormRow& row);    ///< y = x·inverse_std·scale + bias
  float (*sum)(const float* x, std::int64_t n);
};

/// A whole row in f64, for rows that the kernels cannot hold in f32.
NormMoments norm_row_in_double(const NormRow& row, bool rms);

/// Of the current target (target.h).
NormKernels norm_kernels();

}  // namespace headway
