// bf16 in memory, f32 in registers, for one SIMD target: loads that widen, stores that round. Bit operations only,
// which every target and release of Highway has, so that all of them give the same bits; a CPU's own conversion would
// flush denormals. Knows no kernel. Each function exists for f32 too, so that one template serves both types.
#if defined(HEADWAY_OPS_SIMD_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_BF16_INL_H_
#undef HEADWAY_OPS_SIMD_BF16_INL_H_
#else
#define HEADWAY_OPS_SIMD_BF16_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/base/numeric.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Bf16Tag = hn::Rebind<std::uint16_t, D>;

/// The bits of Lanes(d) bf16 numbers as f32.
template <class D>
HWY_INLINE hn::Vec<D> WidenBits(D d, hn::Vec<Bf16Tag<D>> bits) {
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

/// Rounded to nearest, ties to even; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<Bf16Tag<D>> NarrowBits([[maybe_unused]] D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> d32s;
  const auto bits = hn::BitCast(d32, v);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(d32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFF))));
  // Rounding could carry a NaN into infinity or over the sign; made quiet it keeps its upper bits.
  const auto quiet = hn::Or(upper, hn::Set(d32, 0x40));
  const auto is_number = hn::RebindMask(d32, hn::Eq(v, v));
  const auto result = hn::IfThenElse(is_number, rounded, quiet);
  // Below 2^16, so the saturating step changes nothing.
  return hn::DemoteTo(Bf16Tag<D>(), hn::BitCast(d32s, result));
}

/// Lanes(d) elements from any address, as f32.
template <class D>
HWY_INLINE hn::Vec<D> LoadAsF32(D d, const float* HWY_RESTRICT from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAsF32(D d, const BFloat16* HWY_RESTRICT from) {
  return WidenBits(d, hn::LoadU(Bf16Tag<D>(), reinterpret_cast<const std::uint16_t*>(from)));
}

/// Lanes(d) elements to any address, rounded as above.
template <class D>
HWY_INLINE void StoreFromF32(hn::Vec<D> v, D d, float* HWY_RESTRICT to) {
  hn::StoreU(v, d, to);
}
template <class D>
HWY_INLINE void StoreFromF32(hn::Vec<D> v, D d, BFloat16* HWY_RESTRICT to) {
  hn::StoreU(NarrowBits(d, v), Bf16Tag<D>(), reinterpret_cast<std::uint16_t*>(to));
}

HWY_INLINE void StoreOne(float x, float* to) { *to = x; }
HWY_INLINE void StoreOne(float x, BFloat16* to) { *to = to_bfloat16(x); }

/// n elements, a vector at a time and the rest one by one: nothing beyond them is touched.
inline void Widen(const BFloat16* from, float* to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadAsF32(d, from + i), d, to + i);
  for (; i < n; ++i) to[i] = widen(from[i]);
}

inline void Widen(const float* from, float* to, std::int64_t n) { std::copy_n(from, n, to); }

inline void Narrow(const float* from, BFloat16* to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFromF32(hn::LoadU(d, from + i), d, to + i);
  for (; i < n; ++i) StoreOne(from[i], to + i);
}

inline void Scale(const BFloat16* from, float scale, BFloat16* to, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFromF32(hn::Mul(factor, LoadAsF32(d, from + i)), d, to + i);
  for (; i < n; ++i) StoreOne(scale * widen(from[i]), to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_BF16_INL_H_
