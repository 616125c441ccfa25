// Row normalisation for one SIMD target. Decides the loops and how sums are spread over lanes.
#if defined(HEADWAY_OPS_SIMD_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_NORM_INL_H_
#undef HEADWAY_OPS_SIMD_NORM_INL_H_
#else
#define HEADWAY_OPS_SIMD_NORM_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/simd/norm.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Σ term(x[i]) on two vectors of lanes, so that one addition need not wait for the one before it. The rest of a
/// vector is added by itself: padding could not be told from elements where term(0) is not 0.
template <class VectorTerm, class ScalarTerm>
HWY_INLINE float SumOf(const float* x, std::int64_t n, VectorTerm term, ScalarTerm scalar_term) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum0 = hn::Add(sum0, term(hn::LoadU(d, x + i)));
    sum1 = hn::Add(sum1, term(hn::LoadU(d, x + i + lanes)));
  }
  for (; i + lanes <= n; i += lanes) sum0 = hn::Add(sum0, term(hn::LoadU(d, x + i)));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < n; ++i) sum += scalar_term(x[i]);
  return sum;
}

/// y = (x − mean)·factor, then scale and bias where there are any.
HWY_INLINE void ApplyRow(const NormRow& row, float mean, float factor) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vector_mean = hn::Set(d, mean);
  const auto vector_factor = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= row.n; i += lanes) {
    auto y = hn::Mul(hn::Sub(hn::LoadU(d, row.x + i), vector_mean), vector_factor);
    if (row.scale != nullptr) y = hn::Mul(y, hn::LoadU(d, row.scale + i));
    if (row.bias != nullptr) y = hn::Add(y, hn::LoadU(d, row.bias + i));
    hn::StoreU(y, d, row.y + i);
  }
  for (; i < row.n; ++i) {
    float y = (row.x[i] - mean) * factor;
    if (row.scale != nullptr) y *= row.scale[i];
    if (row.bias != nullptr) y += row.bias[i];
    row.y[i] = y;
  }
}

inline float SumRow(const float* x, std::int64_t n) {
  return SumOf(
      x, n, [](auto v) HWY_ATTR { return v; }, [](float v) { return v; });
}

inline NormMoments LayerNormRow(const NormRow& row) {
  const auto n = static_cast<float>(row.n);
  const float mean = SumRow(row.x, row.n) / n;
  const auto vector_mean = hn::Set(hn::ScalableTag<float>(), mean);
  const float squares = SumOf(
      row.x, row.n,
      [&](auto v) HWY_ATTR {
        const auto off = hn::Sub(v, vector_mean);
        return hn::Mul(off, off);
      },
      [&](float v) { return (v - mean) * (v - mean); });
  const float inverse_std = 1.0f / std::sqrt(squares / n + row.epsilon);
  ApplyRow(row, mean, inverse_std);
  return {mean, inverse_std};
}

inline NormMoments RmsNormRow(const NormRow& row) {
  const float squares = SumOf(
      row.x, row.n, [](auto v) HWY_ATTR { return hn::Mul(v, v); }, [](float v) { return v * v; });
  const float inverse_std = 1.0f / std::sqrt(squares / static_cast<float>(row.n) + row.epsilon);
  ApplyRow(row, 0.0f, inverse_std);
  return {0.0f, inverse_std};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_NORM_INL_H_
