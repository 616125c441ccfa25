// The kernels of cache_rows.h for one SIMD target. Decides the loops and their tails.
#if defined(HEADWAY_OPS_SIMD_CACHE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_CACHE_ROWS_INL_H_
#undef HEADWAY_OPS_SIMD_CACHE_ROWS_INL_H_
#else
#define HEADWAY_OPS_SIMD_CACHE_ROWS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/simd/bf16-inl.h"
#include "ops/simd/cache_rows.h"
#include "ops/simd/f16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// n elements, a vector at a time and the rest one by one: nothing beyond them is touched.
template <class Real>
HWY_INLINE void WidenElements(const Real* HWY_RESTRICT from, float* HWY_RESTRICT to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadAsF32(d, from + i), d, to + i);
  for (; i < n; ++i) to[i] = widen(from[i]);
}

template <class Real>
inline void WidenRow(const std::byte* from, float* to, std::int64_t n) {
  WidenElements(reinterpret_cast<const Real*>(from), to, n);
}

template <class Real>
inline void NarrowRow(const float* from, float factor, std::byte* to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  const auto vector_factor = hn::Set(d, factor);
  Real* const at = reinterpret_cast<Real*>(to);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFromF32(hn::Mul(vector_factor, hn::LoadU(d, from + i)), d, at + i);
  for (; i < n; ++i) StoreOne(factor * from[i], at + i);
}

template <class Real>
inline void Gather(const GatherRows& t) {
  for (std::int64_t r = 0; r < t.count; ++r) {
    WidenElements(reinterpret_cast<const Real*>(t.rows[r]), t.to + r * t.to_stride, t.columns);
  }
}

inline void RotateHalf(const RotateRow& t) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  float* const a = t.x;
  float* const b = t.x + t.n;
  std::int64_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i);
    const auto cos = hn::LoadU(d, t.cos + i), sin = hn::LoadU(d, t.sin + i);
    hn::StoreU(hn::NegMulAdd(y, sin, hn::Mul(x, cos)), d, a + i);
    hn::StoreU(hn::MulAdd(x, sin, hn::Mul(y, cos)), d, b + i);
  }
  for (; i < t.n; ++i) {
    const float x = a[i], y = b[i];
    a[i] = x * t.cos[i] - y * t.sin[i];
    b[i] = y * t.cos[i] + x * t.sin[i];
  }
}

inline void RotateInterleaved(const RotateRow& t) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // A vector holds whole pairs; cosines and sines are doubled, and the partner of each element is its neighbour.
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  const std::int64_t pairs = hn::Lanes(half);
  const auto twice = [&](const float* from) HWY_ATTR {
    HWY_ALIGN float doubled[HWY_MAX_BYTES / sizeof(float)];
    for (std::int64_t k = 0; k < pairs; ++k) doubled[2 * k] = doubled[2 * k + 1] = from[k];
    return hn::Load(d, doubled);
  };
  for (; i + pairs <= t.n; i += pairs) {
    const auto x = hn::LoadU(d, t.x + 2 * i);
    const auto partner = hn::Shuffle2301(x);
    const auto turned = hn::Mul(partner, twice(t.sin + i));
    // Even elements lose the product with their partner, odd ones gain it.
    hn::StoreU(hn::Add(hn::Mul(x, twice(t.cos + i)), hn::OddEven(turned, hn::Neg(turned))), d, t.x + 2 * i);
  }
#endif
  for (; i < t.n; ++i) {
    const float x = t.x[2 * i], y = t.x[2 * i + 1];
    t.x[2 * i] = x * t.cos[i] - y * t.sin[i];
    t.x[2 * i + 1] = y * t.cos[i] + x * t.sin[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_CACHE_ROWS_INL_H_
