// Row normalisation for one SIMD target. Decides the loops, how sums are spread over lanes and which row is left to
// f64.
#if defined(HEADWAY_OPS_SIMD_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_NORM_INL_H_
#undef HEADWAY_OPS_SIMD_NORM_INL_H_
#else
#define HEADWAY_OPS_SIMD_NORM_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/simd/norm.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors that are added to one sum before it is added to the sum of sums: rounding then grows with the root of a
/// row's length or less, where one sum would let it grow with the length.
inline constexpr std::int64_t kVectorsPerSum = 64;

/// Σ term(x[i]), on four vectors of lanes so that one addition need not wait for the one before it.
template <class Term>
HWY_INLINE float SumOf(const float* x, std::int64_t n, Term term) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  std::int64_t i = 0;
  while (i + 4 * lanes <= n) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    const std::int64_t end = HWY_MIN(n, i + 4 * lanes * kVectorsPerSum);
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      sum0 = hn::Add(sum0, term(hn::LoadU(d, x + i)));
      sum1 = hn::Add(sum1, term(hn::LoadU(d, x + i + lanes)));
      sum2 = hn::Add(sum2, term(hn::LoadU(d, x + i + 2 * lanes)));
      sum3 = hn::Add(sum3, term(hn::LoadU(d, x + i + 3 * lanes)));
    }
    total = hn::Add(total, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
  }
  for (; i + lanes <= n; i += lanes) total = hn::Add(total, term(hn::LoadU(d, x + i)));
  if (i < n) {
    HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t k = 0; i + k < n; ++k) tail[k] = x[i + k];
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(n - i));
    total = hn::Add(total, hn::IfThenElseZero(inside, term(hn::Load(d, tail))));
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

/// What is taken from every element, as two numbers: x − base is exact or nearly so where x is near the mean, and
/// `rest` is what an f32 of the mean's size cannot hold.
struct Centre {
  float base, rest;
};

/// Σ d and Σ d² over the distances d of a row from a centre.
struct Distances {
  float sum, squares;
};
HWY_INLINE Distances DistancesFrom(const float* x, std::int64_t n, Centre centre) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto base = hn::Set(d, centre.base);
  const auto rest = hn::Set(d, centre.rest);
  const auto distance = [&](const float* at) HWY_ATTR { return hn::Sub(hn::Sub(hn::LoadU(d, at), base), rest); };
  auto sum = hn::Zero(d);
  auto squares = hn::Zero(d);
  std::int64_t i = 0;
  while (i + 2 * lanes <= n) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto squares0 = hn::Zero(d);
    auto squares1 = hn::Zero(d);
    const std::int64_t end = HWY_MIN(n, i + 2 * lanes * kVectorsPerSum);
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto a = distance(x + i);
      const auto b = distance(x + i + lanes);
      sum0 = hn::Add(sum0, a);
      sum1 = hn::Add(sum1, b);
      squares0 = hn::MulAdd(a, a, squares0);
      squares1 = hn::MulAdd(b, b, squares1);
    }
    sum = hn::Add(sum, hn::Add(sum0, sum1));
    squares = hn::Add(squares, hn::Add(squares0, squares1));
  }
  const auto take = [&](auto a) HWY_ATTR {
    sum = hn::Add(sum, a);
    squares = hn::MulAdd(a, a, squares);
  };
  for (; i + lanes <= n; i += lanes) take(distance(x + i));
  if (i < n) {
    HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t k = 0; i + k < n; ++k) tail[k] = x[i + k];
    take(hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(n - i)), distance(tail)));
  }
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::SumOfLanes(d, squares))};
}

/// y = (x − centre)·factor, then scale and bias where there are any.
template <bool kCentred>
HWY_INLINE void ApplyRow(const NormRow& row, Centre centre, float factor) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto base = hn::Set(d, centre.base);
  const auto rest = hn::Set(d, centre.rest);
  const auto vector_factor = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= row.n; i += lanes) {
    auto y = hn::LoadU(d, row.x + i);
    if (kCentred) y = hn::Sub(hn::Sub(y, base), rest);
    y = hn::Mul(y, vector_factor);
    if (row.scale != nullptr) y = hn::Mul(y, hn::LoadU(d, row.scale + i));
    if (row.bias != nullptr) y = hn::Add(y, hn::LoadU(d, row.bias + i));
    hn::StoreU(y, d, row.y + i);
  }
  for (; i < row.n; ++i) {
    float y = row.x[i];
    if (kCentred) y = (y - centre.base) - centre.rest;
    y *= factor;
    if (row.scale != nullptr) y *= row.scale[i];
    if (row.bias != nullptr) y += row.bias[i];
    row.y[i] = y;
  }
}

inline float SumRow(const float* x, std::int64_t n) {
  return SumOf(x, n, [](auto v) HWY_ATTR { return v; });
}

/// False where squares have overflowed, or vanished beside a tiny epsilon: then f64 has to do it.
inline bool InRangeOfF32(float variance) { return variance >= 1e-32f && variance <= std::numeric_limits<float>::max(); }

/// The mean as the first element plus the mean distance from it: exact for a constant row. It is corrected by what is
/// left of it in the second pass, in which the variance cannot cancel any more.
inline NormMoments LayerNormRow(const NormRow& row) {
  const auto n = static_cast<float>(row.n);
  const float first = row.x[0];
  const auto vector_first = hn::Set(hn::ScalableTag<float>(), first);
  const float offset = SumOf(row.x, row.n, [&](auto v) HWY_ATTR { return hn::Sub(v, vector_first); }) / n;
  Centre centre{first + offset, 0};
  centre.rest = offset - (centre.base - first);
  const Distances distances = DistancesFrom(row.x, row.n, centre);
  const float left = distances.sum / n;
  const float around_mean = distances.squares / n - left * left;
  const float variance = (around_mean < 0 ? 0.0f : around_mean) + row.epsilon;  // NaN stays
  if (!InRangeOfF32(variance)) return norm_row_in_double(row, false);
  centre.rest += left;
  const float inverse_std = 1.0f / std::sqrt(variance);
  ApplyRow<true>(row, centre, inverse_std);
  return {centre.base + centre.rest, inverse_std};
}

inline NormMoments RmsNormRow(const NormRow& row) {
  const float squares = SumOf(row.x, row.n, [](auto v) HWY_ATTR { return hn::Mul(v, v); });
  const float mean_square = squares / static_cast<float>(row.n) + row.epsilon;
  if (!InRangeOfF32(mean_square)) return norm_row_in_double(row, true);
  const float inverse_std = 1.0f / std::sqrt(mean_square);
  ApplyRow<false>(row, {}, inverse_std);
  return {0.0f, inverse_std};
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_NORM_INL_H_
