// Rows normalised in the type they are computed in: f32 by the vectorised kernels, f64 by plain loops. Knows no
// operator.
#pragma once

#include <cstdint>

#include "ops/base/wide_norm.h"
#include "ops/simd/norm.h"

namespace headway {

/// C is float or double. `scale` and `bias` are n long or null; `y` may be `x`.
template <class C>
struct NormArgs {
  const C* x;
  C* y;
  const C* scale;
  const C* bias;
  std::int64_t n;
};
template <class C>
struct Moments {
  C mean, inverse_std;
};

/// What a row is normalised by: its root mean square, or mean and variance.
struct NormKind {
  bool rms = false;
  float epsilon = 1e-5f;
  NormKernels kernels = norm_kernels();

  Moments<float> operator()(const NormArgs<float>& a) const {
    const NormRow row{a.x, a.y, a.scale, a.bias, a.n, epsilon};
    const NormMoments m = rms ? kernels.rms_norm(row) : kernels.layer_norm(row);
    return {m.mean, m.inverse_std};
  }

  Moments<double> operator()(const NormArgs<double>& a) const {
    const WideMoments m = wide_norm(WideNormRow<double>{a.x, a.y, a.scale, a.bias, a.n, double{epsilon}}, rms);
    return {m.mean, m.inverse_std};
  }
};

}  // namespace headway
