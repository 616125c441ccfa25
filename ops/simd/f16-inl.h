// f16 in memory, f32 in registers, for one SIMD target: loads that widen, stores that round to nearest even. On x86
// with F16C by its conversions, which mind no flush-to-zero mode; elsewhere by the scalar functions of numeric.h, which
// give the same bits. Each function has the name that bf16-inl.h gives it, so that one template serves every type.
#if defined(HEADWAY_OPS_SIMD_F16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_F16_INL_H_
#undef HEADWAY_OPS_SIMD_F16_INL_H_
#else
#define HEADWAY_OPS_SIMD_F16_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/base/numeric.h"
#include "ops/simd/bf16-inl.h"

// Highway 1.0 converts by truncation where there is no instruction, so its own conversion is used only where there is.
#undef HEADWAY_HAS_F16_CONVERSION
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3) && !defined(HWY_DISABLE_F16C)
#define HEADWAY_HAS_F16_CONVERSION 1
#else
#define HEADWAY_HAS_F16_CONVERSION 0
#endif

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes(d) elements from any address, as f32.
template <class D>
HWY_INLINE hn::Vec<D> LoadAsF32(D d, const Float16* HWY_RESTRICT from) {
#if HEADWAY_HAS_F16_CONVERSION
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  HWY_ALIGN float wide[HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) wide[i] = widen(from[i]);
  return hn::Load(d, wide);
#endif
}

/// Lanes(d) elements to any address, rounded.
template <class D>
HWY_INLINE void StoreFromF32(hn::Vec<D> v, D d, Float16* HWY_RESTRICT to) {
#if HEADWAY_HAS_F16_CONVERSION
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(to));
#else
  HWY_ALIGN float wide[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, wide);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i] = to_float16(wide[i]);
#endif
}

HWY_INLINE void StoreOne(float x, Float16* to) { *to = to_float16(x); }

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_F16_INL_H_
