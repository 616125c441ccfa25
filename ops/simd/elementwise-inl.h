// Elementwise kernels for one SIMD target. Decides the loops and their tails, and the polynomials of erf; exp and tanh
// are in math-inl.h, the activations of models in gated-inl.h.
#if defined(HEADWAY_OPS_SIMD_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_ELEMENTWISE_INL_H_
#undef HEADWAY_OPS_SIMD_ELEMENTWISE_INL_H_
#else
#define HEADWAY_OPS_SIMD_ELEMENTWISE_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/simd/elementwise.h"
#include "ops/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// y[i] = body(x[i]); the rest of a vector goes through a small buffer, so that nothing beyond n is touched.
template <class Body>
HWY_INLINE void MapRow(const void* from, void* to, std::int64_t n, Body body) {
  const hn::ScalableTag<float> d;
  const auto* HWY_RESTRICT x = static_cast<const float*>(from);
  auto* y = static_cast<float*>(to);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(body(hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t k = 0; i + k < n; ++k) tail[k] = x[i + k];
  hn::Store(body(hn::Load(d, tail)), d, tail);
  for (std::int64_t k = 0; i + k < n; ++k) y[i + k] = tail[k];
}

/// kStepA and kStepB are 0 (one value for the whole row) or 1.
template <int kStepA, int kStepB, class Body>
HWY_INLINE void ZipRow(const BinaryRow& row, Body body) {
  const hn::ScalableTag<float> d;
  const auto* a = static_cast<const float*>(row.a);
  const auto* b = static_cast<const float*>(row.b);
  auto* out = static_cast<float*>(row.out);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto a0 = hn::Set(d, a[0]);
  const auto b0 = hn::Set(d, b[0]);
  const auto load_a = [&](std::int64_t i) HWY_ATTR { return kStepA == 0 ? a0 : hn::LoadU(d, a + i); };
  const auto load_b = [&](std::int64_t i) HWY_ATTR { return kStepB == 0 ? b0 : hn::LoadU(d, b + i); };
  std::int64_t i = 0;
  for (; i + lanes <= row.n; i += lanes) hn::StoreU(body(load_a(i), load_b(i)), d, out + i);
  if (i == row.n) return;
  HWY_ALIGN float tail_a[HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN float tail_b[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t k = 0; i + k < row.n; ++k) {
    tail_a[k] = a[(i + k) * kStepA];
    tail_b[k] = b[(i + k) * kStepB];
  }
  hn::Store(body(hn::Load(d, tail_a), hn::Load(d, tail_b)), d, tail_a);
  for (std::int64_t k = 0; i + k < row.n; ++k) out[i + k] = tail_a[k];
}

template <class Body>
HWY_INLINE void ZipRowOfAnyStep(const BinaryRow& row, Body body) {
  if (row.n <= 0) return;
  if (row.a_step == 0) {
    row.b_step == 0 ? ZipRow<0, 0>(row, body) : ZipRow<0, 1>(row, body);
  } else {
    row.b_step == 0 ? ZipRow<1, 0>(row, body) : ZipRow<1, 1>(row, body);
  }
}

inline void AddRow(const BinaryRow& row) {
  ZipRowOfAnyStep(row, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}
inline void SubRow(const BinaryRow& row) {
  ZipRowOfAnyStep(row, [](auto a, auto b) HWY_ATTR { return hn::Sub(a, b); });
}
inline void MulRow(const BinaryRow& row) {
  ZipRowOfAnyStep(row, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); });
}
inline void DivRow(const BinaryRow& row) {
  ZipRowOfAnyStep(row, [](auto a, auto b) HWY_ATTR { return hn::Div(a, b); });
}

/// e^x on the whole line, relative error at most 3e-7 with or without a fused multiply-add: ln2 in two parts, of which
/// n times the first is exact, and 2^n in two factors, so that the ends of the range are reached. Exp, made for
/// softmax, has neither. The polynomial is Exp's.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpAnywhere(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Beyond these the result is 0 or infinite.
  x = MinKeepNan(d, hn::Set(d, 89.0f), MaxKeepNan(d, hn::Set(d, -104.0f), x));
  const V magic = hn::Set(d, 12582912.0f);  // rounds to an integer, see SplitPowerOfTwo
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(hn::Set(d, 0.008290263824164867f), r, hn::Set(d, 0.04189816117286682f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666763871908188f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999914765357971f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.9999997019767761f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
  return hn::Mul(hn::Mul(p, first), second);
}

/// 1 / (1 + e^−x) with an exponent that is never positive: e^x / (1 + e^x) left of 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = ExpAnywhere(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// Where the series of erf hands over to its complement.
inline constexpr float kErfBorder = 0.9f;
/// Where the complement of erf is as good as 0.
inline constexpr float kErfEnd = 5.5f;

/// erf(x) for |x| ≤ 0.9: x·p(x²), degree 5, minimax, 1.2e-8.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfNearZero(D d, V x) {
  const V s = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, -0.0006090356619097292f), s, hn::Set(d, 0.0050119622610509396f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.02677890844643116f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.11282140761613846f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.3761252462863922f));
  p = hn::MulAdd(p, s, hn::Set(d, 1.1283791065216064f));
  return hn::Mul(x, p);
}

/// 1 − erf(t) for t ≥ 0.9: e^p(t), p of degree 8, 7e-7 relative and a few e-6 with the rounding of p up to 5.5, where
/// the value is 7e-15; beyond it that value.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfComplement(D d, V t) {
  t = MinKeepNan(d, hn::Set(d, kErfEnd), t);
  V p = hn::MulAdd(hn::Set(d, 9.476522109252983e-07f), t, hn::Set(d, -3.113343700533733e-05f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.00045951962238177657f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.004061375744640827f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.024282585829496384f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.10605773329734802f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.6363452672958374f));
  p = hn::MulAdd(p, t, hn::Set(d, -1.1274694204330444f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0003830617351923138f));
  return Exp(d, p);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V t = hn::Abs(x);
  const V far = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), ErfComplement(d, t)), x);
  return hn::IfThenElse(hn::Le(t, hn::Set(d, kErfBorder)), ErfNearZero(d, x), far);
}

inline void ExpOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return ExpAnywhere(hn::ScalableTag<float>(), v); });
}
inline void TanhOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return Tanh(hn::ScalableTag<float>(), v); });
}
inline void SigmoidOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return Sigmoid(hn::ScalableTag<float>(), v); });
}
inline void ErfOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return Erf(hn::ScalableTag<float>(), v); });
}
inline void SqrtOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return hn::Sqrt(v); });
}
inline void ReciprocalOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR { return hn::Div(hn::Set(hn::ScalableTag<float>(), 1.0f), v); });
}
inline void ReluOfRow(const void* x, void* y, std::int64_t n) {
  MapRow(x, y, n, [](auto v) HWY_ATTR {
    const hn::ScalableTag<float> d;
    return MaxKeepNan(d, hn::Zero(d), v);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_ELEMENTWISE_INL_H_
