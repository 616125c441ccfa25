// exp, ln and tanh for one vector, in f32. Decides the polynomial and what happens at the edges; knows no loop.
#if defined(HEADWAY_OPS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_MATH_INL_H_
#undef HEADWAY_OPS_SIMD_MATH_INL_H_
#else
#define HEADWAY_OPS_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// max(low, x), but NaN in x stays NaN. x86 returns the second operand when either is NaN, so there the order of the
/// operands is enough; elsewhere Max may drop it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MaxKeepNan(D, V low, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(low, x);
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinKeepNan(D, V high, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Gt(x, high), high, x);
#endif
}

/// x = n·ln2 + r with |r| ≤ ln2/2; `half_power` is 2^(n − 1), and +0 for n = −126. x must lie in [−126·ln2, 127·ln2].
/// Half, because 2^−126 times a factor below 1 would be denormal, and a product with a denormal costs a hundred cycles.
/// With a fused product one constant for ln2 is enough: its error of 1.9e-9 costs 5e-8 at x = −20.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SplitPowerOfTwo(D d, V x, V& r, V& half_power) {
  const hn::RebindToUnsigned<D> du;
  // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits, here with the exponent's bias of 127 less one
  // added, so that a shift by 23 makes it the exponent field.
  const V magic = hn::Set(d, 12582912.0f + 126.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const V n = hn::Sub(shifted, magic);
#if HWY_NATIVE_FMA
  r = hn::NegMulAdd(n, hn::Set(d, 0.693147180559945309f), x);
#else
  // The product with the first part is exact: nine bits times at most eight.
  r = hn::Sub(x, hn::Mul(n, hn::Set(d, 0.693359375f)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, -2.12194440e-4f)));
#endif
  half_power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
}

// With 32 registers of 16 lanes a power of two comes from a table in two of them, which leaves a remainder so small
// that two or three terms do; and AVX-512 has an instruction that multiplies by 2^⌊n⌋ without a detour by the
// exponent's bits. Nine operations instead of eleven. Spelled out, because Highway 1.0 has no name for the two
// instructions.
#undef HEADWAY_EXP_BY_TABLE
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define HEADWAY_EXP_BY_TABLE 1

/// 2^(k/32)
HWY_ALIGN_MAX inline constexpr float kPartsOfTwo[32] = {
    1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f, 1.1637249f,
    1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f, 1.35425556f, 1.38390994f,
    1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f, 1.5759809f,  1.61049032f, 1.64575553f,
    1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f, 1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};

/// e^x = 2^n·e^r where n is a multiple of 1/32 and |r| ≤ ln2/64; exactly 0 from −87 on.
template <bool kForBf16>
HWY_INLINE __m512 ExpByTable(__m512 x) {
  // As in SplitPowerOfTwo; the last five bits of `shifted` are the fraction of n.
  const __m512 magic = _mm512_set1_ps(393216.0f);
  const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504088896341f), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693147180559945309f), x);
  const __m512 part = _mm512_permutex2var_ps(_mm512_load_ps(kPartsOfTwo), _mm512_castps_si512(shifted),
                                             _mm512_load_ps(kPartsOfTwo + 16));
  __m512 product;
  if constexpr (kForBf16) {
    product = _mm512_fmadd_ps(part, r, part);
  } else {
    // (e^r − 1) / r, minimax with a slope of 1/2.
    const __m512 factor = _mm512_fmadd_ps(r, _mm512_set1_ps(0.5f), _mm512_set1_ps(1.0000146622f));
    product = _mm512_fmadd_ps(factor, _mm512_mul_ps(part, r), part);
  }
  // Not less or equal, so that NaN stays NaN.
  const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_NLE_UQ);
  return _mm512_maskz_scalef_ps(counts, product, n);
}
#else
#define HEADWAY_EXP_BY_TABLE 0
#endif

/// e^x for x ≤ 88. Relative error at most 2.6e-7 on [−20, 0] and 4.1e-7 down to −86.9; exactly 0 from −87 on, −inf
/// included, so that no denormal ever reaches a product; NaN stays NaN because the power multiplies the polynomial.
/// Without a table: degree 5, minimax with a constant term of exactly 1, 1.5e-7 with its rounding. Every coefficient
/// stands doubled here for the half power.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
#if HEADWAY_EXP_BY_TABLE
  if constexpr (hn::MaxLanes(D()) == 16) return V{ExpByTable<false>(x.raw)};
#endif
  x = MaxKeepNan(d, hn::Set(d, -87.3365479f), x);  // −126·ln2, where the power is 0
  V r, half_power;
  SplitPowerOfTwo(d, x, r, half_power);
  V p = hn::MulAdd(hn::Set(d, 2 * 0.008290263824164867f), r, hn::Set(d, 2 * 0.04189816117286682f));
  p = hn::MulAdd(p, r, hn::Set(d, 2 * 0.1666763871908188f));
  p = hn::MulAdd(p, r, hn::Set(d, 2 * 0.4999914765357971f));
  p = hn::MulAdd(p, r, hn::Set(d, 2 * 0.9999997019767761f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0f));
  return hn::Mul(p, half_power);
}

/// e^x as Exp has it, but good to 7.5e-5 only: for probs that are rounded to bf16, whose step is fifty times that.
/// Without a table: degree 3, minimax.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpForBf16(D d, V x) {
#if HEADWAY_EXP_BY_TABLE
  if constexpr (hn::MaxLanes(D()) == 16) return V{ExpByTable<true>(x.raw)};
#endif
  x = MaxKeepNan(d, hn::Set(d, -87.3365479f), x);
  V r, half_power;
  SplitPowerOfTwo(d, x, r, half_power);
  V p = hn::MulAdd(hn::Set(d, 2 * 0.16566823f), r, hn::Set(d, 2 * 0.50496426f));
  p = hn::MulAdd(p, r, hn::Set(d, 2 * 1.00016425f));
  p = hn::MulAdd(p, r, hn::Set(d, 2 * 0.99992805f));
  return hn::Mul(p, half_power);
}

/// ln(x) for x from the smallest normal number on, absolute error at most 1.2e-7·(1 + |ln x|); −inf for 0, NaN for NaN
/// and infinity. x = 2^n·(1 + f) with √½ ≤ 1 + f < √2; the polynomial is that of Cephes' logf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V n = hn::ConvertTo(d, exponent);
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  V p = hn::MulAdd(hn::Set(d, 7.0376836292e-2f), f, hn::Set(d, -1.1514610310e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.1676998740e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -1.2420140846e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.4249322787e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -1.6668057665e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.0000714765e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -2.4999993993e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 3.3333331174e-1f));
  const V square = hn::Mul(f, f);
  V low = hn::MulAdd(n, hn::Set(d, -2.12194440e-4f), hn::Mul(hn::Mul(p, f), square));
  low = hn::NegMulAdd(hn::Set(d, 0.5f), square, low);
  const V log = hn::MulAdd(n, hn::Set(d, 0.693359375f), hn::Add(f, low));
  const V minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  return hn::Add(hn::IfThenElse(hn::Eq(x, hn::Zero(d)), minus_infinity, log), hn::Sub(x, x));
}

/// tanh(x), relative error at most 5e-7 also near 0: (e^2|x| − 1) / (e^2|x| + 1), the numerator without cancellation.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V two_abs = MinKeepNan(d, hn::Set(d, 20.0f), hn::Abs(hn::Add(x, x)));  // tanh(10) is 1 in f32
  V r, half_power;
  SplitPowerOfTwo(d, two_abs, r, half_power);
  const V power = hn::Add(half_power, half_power);
  // e^r − 1 = r·q(r), degree 6 in all: small r keeps its relative precision.
  V q = hn::MulAdd(hn::Set(d, 0.0013843600172549486f), r, hn::Set(d, 0.008374196477234364f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.04166800528764725f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.16666430234909058f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.4999999403953552f));
  q = hn::MulAdd(q, r, one);
  const V exp_minus_1 = hn::MulAdd(power, hn::Mul(q, r), hn::Sub(power, one));
  const V magnitude = hn::Div(exp_minus_1, hn::Add(exp_minus_1, hn::Set(d, 2.0f)));
  return hn::CopySign(magnitude, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_MATH_INL_H_
