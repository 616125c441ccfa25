// GELU, its tanh form and SiLU for one SIMD target: x·sigmoid(z(x)) = x / (1 + e^−z(x)).
#if defined(HEADWAY_OPS_SIMD_GATED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_GATED_INL_H_
#undef HEADWAY_OPS_SIMD_GATED_INL_H_
#else
#define HEADWAY_OPS_SIMD_GATED_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "ops/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// a / b for b of at least 1, b and 1 / b normal.
template <class V>
HWY_INLINE V Quotient(V a, V b) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
  // An estimate of 14 bits and a step of Newton, 2e-7, take a third of the time of sixteen divisions.
  const V estimate = hn::ApproximateReciprocal(b);
  return hn::Mul(hn::Mul(a, estimate), hn::NegMulAdd(b, estimate, hn::Set(hn::DFromV<V>(), 2.0f)));
#else
  return hn::Div(a, b);
#endif
}

/// y = x·sigmoid(z(x)), where z does not fall and is at least −86.5 right of `end`. Left of it the result is below
/// 4e-36 and becomes −0, to the end of the line, so that no denormal reaches the next product. In three passes over a
/// block in the first-level cache: in one, a chain of thirty operations a vector is more than a scheduler holds of
/// enough vectors to keep both units busy (2.5 times the time).
template <class MinusZ>
HWY_INLINE void GateVectors(const float* x, float* y, std::int64_t vectors, float end, MinusZ minus_z) {
  constexpr std::int64_t kBlock = 16;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, end);
  HWY_ALIGN float powers[kBlock * hn::MaxLanes(d)];
  for (; vectors > 0; vectors -= kBlock, x += kBlock * lanes, y += kBlock * lanes) {
    const std::int64_t count = std::min(vectors, kBlock) * lanes;
    for (std::int64_t i = 0; i < count; i += lanes) {
      hn::Store(minus_z(d, MaxKeepNan(d, limit, hn::LoadU(d, x + i))), d, powers + i);
    }
    for (std::int64_t i = 0; i < count; i += lanes) hn::Store(Exp(d, hn::Load(d, powers + i)), d, powers + i);
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto value = hn::LoadU(d, x + i);
      const auto quotient = Quotient(MaxKeepNan(d, limit, value), hn::Add(hn::Set(d, 1.0f), hn::Load(d, powers + i)));
      hn::StoreU(hn::IfThenElse(hn::Lt(value, limit), hn::Set(d, -0.0f), quotient), d, y + i);
    }
  }
}

template <class MinusZ>
HWY_INLINE void GateRow(const void* from, void* to, std::int64_t n, float end, MinusZ minus_z) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const float*>(from);
  auto* y = static_cast<float*>(to);
  GateVectors(x, y, n / lanes, end, minus_z);
  const std::int64_t rest = n % lanes;
  if (rest == 0) return;
  HWY_ALIGN float tail[hn::MaxLanes(d)] = {};
  std::copy_n(x + n - rest, rest, tail);
  GateVectors(tail, tail, 1, end, minus_z);
  std::copy_n(tail, rest, y + n - rest);
}

/// x·Φ(x): ln(Φ(x) / Φ(−x)) is x times a function of x², which a polynomial of degree 8 meets within 1e-7 of Φ, and
/// within 3e-5 of Φ's own size down to −5.
inline void GeluOfRow(const void* x, void* y, std::int64_t n) {
  GateRow(x, y, n, -8.375f, [](auto d, auto v) HWY_ATTR {
    const auto s = hn::Mul(v, v);
    auto p = hn::MulAdd(hn::Set(d, -6.830167399544951e-13f), s, hn::Set(d, 1.2591762355018687e-10f));
    p = hn::MulAdd(p, s, hn::Set(d, -9.449622417889714e-09f));
    p = hn::MulAdd(p, s, hn::Set(d, 3.8252193235166487e-07f));
    p = hn::MulAdd(p, s, hn::Set(d, -9.055377631739248e-06f));
    p = hn::MulAdd(p, s, hn::Set(d, 0.00011581959552131593f));
    p = hn::MulAdd(p, s, hn::Set(d, 5.428723670775071e-05f));
    p = hn::MulAdd(p, s, hn::Set(d, -0.07265743613243103f));
    p = hn::MulAdd(p, s, hn::Set(d, -1.5957716703414917f));
    return hn::Mul(v, p);
  });
}

/// (1 + tanh(u)) / 2 is sigmoid(2u), which does not cancel left of 0.
inline void GeluTanhOfRow(const void* x, void* y, std::int64_t n) {
  GateRow(x, y, n, -9.9f, [](auto d, auto v) HWY_ATTR {
    const auto minus_two = hn::Set(d, -1.59576912160573081f);  // −2·√(2/π)
    return hn::Mul(v, hn::MulAdd(hn::Mul(v, v), hn::Set(d, -1.59576912160573081f * 0.044715f), minus_two));
  });
}

inline void SiluOfRow(const void* x, void* y, std::int64_t n) {
  GateRow(x, y, n, -86.5f, [](auto, auto v) HWY_ATTR { return hn::Neg(v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_GATED_INL_H_
