// Folding of softmax states for one SIMD target.
#if defined(HEADWAY_OPS_SIMD_SOFTMAX_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_SOFTMAX_STATE_INL_H_
#undef HEADWAY_OPS_SIMD_SOFTMAX_STATE_INL_H_
#else
#define HEADWAY_OPS_SIMD_SOFTMAX_STATE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/softmax_state.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// What each side is multiplied by; `maximum` becomes the larger one.
template <class V>
struct FoldWeights {
  V left, right, maximum;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE FoldWeights<V> WeightsOf(D d, V left, V right) {
  const V m = hn::Max(left, right);
  return {Exp(d, hn::Sub(left, m)), Exp(d, hn::Sub(right, m)), m};
}
template <class V>
HWY_INLINE V Weighted(const FoldWeights<V>& w, V left, V right) {
  return hn::MulAdd(w.right, right, hn::Mul(w.left, left));
}

/// A side that saw no key has a context of 0, or of NaN where a hidden value was one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Lived(D d, bool lives, V context) {
  return lives ? context : hn::Zero(d);
}

inline void FoldRow(const FoldStates& t) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  const auto w = WeightsOf(d, hn::Set(d, *t.maximum), hn::Set(d, *t.right_maximum));
  *t.maximum = hn::GetLane(w.maximum);
  *t.sum = hn::GetLane(Weighted(w, hn::Set(d, *t.sum), hn::Set(d, *t.right_sum)));
  const bool left_lives = *t.live > 0, right_lives = *t.right_live > 0;
  *t.live = std::max(*t.live, *t.right_live);
  std::int64_t c = 0;
  for (; c + lanes <= t.columns; c += lanes) {
    hn::StoreU(Weighted(w, Lived(d, left_lives, hn::LoadU(d, t.context + c)),
                        Lived(d, right_lives, hn::LoadU(d, t.right_context + c))),
               d, t.context + c);
  }
  for (; c < t.columns; ++c) {
    t.context[c] = hn::GetLane(Weighted(w, Lived(d, left_lives, hn::Set(d, t.context[c])),
                                        Lived(d, right_lives, hn::Set(d, t.right_context[c]))));
  }
}

inline void FoldPanel(const FoldStates& t) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = hn::Lanes(d);
  for (std::int64_t r = 0; r < t.rows; r += lanes) {
    const auto w = WeightsOf(d, hn::Load(d, t.maximum + r), hn::Load(d, t.right_maximum + r));
    hn::Store(w.maximum, d, t.maximum + r);
    hn::Store(Weighted(w, hn::Load(d, t.sum + r), hn::Load(d, t.right_sum + r)), d, t.sum + r);
    const auto left_live = hn::Load(d, t.live + r), right_live = hn::Load(d, t.right_live + r);
    const auto left_lives = hn::Gt(left_live, hn::Zero(d)), right_lives = hn::Gt(right_live, hn::Zero(d));
    hn::Store(hn::Max(left_live, right_live), d, t.live + r);
    float* HWY_RESTRICT left = t.context + r;
    const float* HWY_RESTRICT right = t.right_context + r;
    for (std::int64_t c = 0; c < t.columns; ++c, left += t.rows, right += t.rows) {
      hn::Store(Weighted(w, hn::IfThenElseZero(left_lives, hn::Load(d, left)),
                         hn::IfThenElseZero(right_lives, hn::Load(d, right))),
                d, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_SOFTMAX_STATE_INL_H_
