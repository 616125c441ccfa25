// Row-wise softmax, exp and softcap for one SIMD target. Decides the loop and its tail; the mathematics is math-inl.h.
#if defined(HEADWAY_OPS_SIMD_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_SOFTMAX_INL_H_
#undef HEADWAY_OPS_SIMD_SOFTMAX_INL_H_
#else
#define HEADWAY_OPS_SIMD_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/simd/bf16-inl.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(offset, load, store) for whole vectors, then once for the rest through a small buffer: the one place
/// where a tail is handled. `pad` fills the lanes beyond the end.
template <class D, class Body>
HWY_INLINE void ForEachVector(D d, const float* x, float* out, std::int64_t n, float pad, Body body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto result = body(hn::LoadU(d, x + i));
    hn::StoreU(result, d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)];
  for (std::int64_t k = 0; k < lanes; ++k) tail[k] = i + k < n ? x[i + k] : pad;
  hn::Store(body(hn::Load(d, tail)), d, tail);
  for (std::int64_t k = 0; i + k < n; ++k) out[i + k] = tail[k];
}

inline float RowMax(const float* x, std::int64_t n, float so_far) {
  const hn::ScalableTag<float> d;
  auto max = hn::Set(d, so_far);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) max = hn::Max(hn::LoadU(d, x + i), max);
  float largest = hn::GetLane(hn::MaxOfLanes(d, max));
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

inline RowSum SoftmaxRow(float* scores, std::int64_t n) {
  using D = hn::ScalableTag<float>;
  const D d;
  // The lowest float instead of −inf: exp(−inf − max) is then 0 and not NaN before the first visible score.
  const auto row_max = hn::Set(d, RowMax(scores, n, std::numeric_limits<float>::lowest()));
  auto sum = hn::Zero(d);
  ForEachVector(d, scores, scores, n, -std::numeric_limits<float>::infinity(), [&](auto x) HWY_ATTR {
    const auto p = Exp(d, hn::Sub(x, row_max));
    sum = hn::Add(sum, p);
    return p;
  });
  const auto total = hn::SumOfLanes(d, sum);
  const auto reciprocal = hn::Div(hn::Set(d, 1.0f), total);
  ForEachVector(d, scores, scores, n, 0.0f, [&](auto p) HWY_ATTR { return hn::Mul(p, reciprocal); });
  return {.max = hn::GetLane(row_max), .sum = hn::GetLane(total)};
}

inline void LogSumExpRows(const float* max, const float* sum, float* out, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, max + i), Log(d, hn::LoadU(d, sum + i))), d, out + i);
  }
  for (; i < n; ++i) out[i] = max[i] + hn::GetLane(Log(d, hn::Set(d, sum[i])));
}

inline void ExpRow(const float* x, float* out, std::int64_t n) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, x, out, n, 0.0f, [&](auto v) HWY_ATTR { return Exp(d, v); });
}

inline void SoftcapRow(float* x, float softcap, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto cap = hn::Set(d, softcap);
  ForEachVector(d, x, x, n, 0.0f, [&](auto v) HWY_ATTR { return hn::Mul(cap, Tanh(d, hn::Div(v, cap))); });
}

inline void NormalizeRow(float* scores, std::int64_t n, float max, float reciprocal_sum) {
  const hn::ScalableTag<float> d;
  const auto row_max = hn::Set(d, max);
  const auto reciprocal = hn::Set(d, reciprocal_sum);
  ForEachVector(d, scores, scores, n, 0.0f,
                [&](auto x) HWY_ATTR { return hn::Mul(Exp(d, hn::Sub(x, row_max)), reciprocal); });
}

inline float ExpRowToBf16(const float* x, std::int64_t n, float scale, float max, BFloat16* probs) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  const auto shift = hn::Set(d, max);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // The difference first: of products the largest would lie above or below `max` by what rounding took, as much as
  // 2^100 of a score of 2^124.
  const auto weigh = [&](auto v) HWY_ATTR { return Exp(d, hn::Mul(factor, hn::Sub(v, shift))); };
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto p = weigh(hn::LoadU(d, x + i));
    sum = hn::Add(sum, p);
    StoreFromF32(p, d, probs + i);
  }
  if (i < n) {
    HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
    BFloat16 rounded[HWY_MAX_BYTES / sizeof(float)];
    for (std::int64_t k = 0; k < lanes; ++k) rest[k] = i + k < n ? x[i + k] : -std::numeric_limits<float>::infinity();
    const auto p = weigh(hn::Load(d, rest));
    sum = hn::Add(sum, p);
    StoreFromF32(p, d, rounded);
    std::copy_n(rounded, n - i, probs + i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_SOFTMAX_INL_H_
