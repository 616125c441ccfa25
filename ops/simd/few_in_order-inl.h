// Softmax and context of few_in_order.h for one SIMD target.
#if defined(HEADWAY_OPS_SIMD_FEW_IN_ORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_FEW_IN_ORDER_INL_H_
#undef HEADWAY_OPS_SIMD_FEW_IN_ORDER_INL_H_
#else
#define HEADWAY_OPS_SIMD_FEW_IN_ORDER_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "ops/simd/bf16-inl.h"
#include "ops/simd/f16-inl.h"
#include "ops/simd/few_in_order.h"
#include "ops/simd/few_queries-inl.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/softmax-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Sums of kRows rows of exps, key by key: chains of additions that wait for one another, so that rows run side by
/// side.
template <int kRows>
HWY_INLINE void SumInOrder(const OrderedSoftmax& t, std::int64_t row) {
  float sum[kRows] = {};
  const float* const x = t.scores + row * t.row_stride;
  for (std::int64_t i = 0; i < t.n; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[r] += x[r * t.row_stride + i];
  }
  const TileTag d;
  for (int r = 0; r < kRows; ++r) {
    float& total = t.sum[row + r];
    total = hn::GetLane(hn::MulAdd(hn::Set(d, total), hn::Set(d, t.rescale[row + r]), hn::Set(d, sum[r])));
  }
}

inline void SoftmaxInOrder(const OrderedSoftmax& t) {
  const TileTag d;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    float* const x = t.scores + r * t.row_stride;
    const float highest = RowMax(x, t.n, t.maximum[r]);
    const auto shift = hn::Set(d, highest);
    ForEachVector(d, x, x, t.n, highest, [&](auto v) HWY_ATTR { return Exp(d, hn::Sub(v, shift)); });
    t.rescale[r] = hn::GetLane(Exp(d, hn::Sub(hn::Set(d, t.maximum[r]), shift)));
    t.maximum[r] = highest;
  }
  std::int64_t row = 0;
  for (; row + 4 <= t.rows; row += 4) SumInOrder<4>(t, row);
  for (; row < t.rows; ++row) SumInOrder<1>(t, row);
}

/// Keys whose values are added before the next columns: they stay in the first-level cache for all columns and rows.
inline constexpr std::int64_t kKeysInTurn = 32;

/// Values are prefetched so many rows before they are read: memory takes as long as that.
inline constexpr std::int64_t kValuesAhead = 16;

/// Four vectors of columns of one row.
struct OrderedSums {
  TileVector s0, s1, s2, s3;
};

/// `first`: the context is rescaled as it is loaded.
HWY_INLINE OrderedSums LoadSums(const float* at, float rescale, bool first) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  OrderedSums sums = {hn::LoadU(d, at), hn::LoadU(d, at + lanes), hn::LoadU(d, at + 2 * lanes),
                      hn::LoadU(d, at + 3 * lanes)};
  if (!first) return sums;
  const auto factor = hn::Set(d, rescale);
  sums.s0 = hn::Mul(factor, sums.s0);
  sums.s1 = hn::Mul(factor, sums.s1);
  sums.s2 = hn::Mul(factor, sums.s2);
  sums.s3 = hn::Mul(factor, sums.s3);
  return sums;
}
HWY_INLINE void StoreSums(const OrderedSums& sums, float* at) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  hn::StoreU(sums.s0, d, at);
  hn::StoreU(sums.s1, d, at + lanes);
  hn::StoreU(sums.s2, d, at + 2 * lanes);
  hn::StoreU(sums.s3, d, at + 3 * lanes);
}

template <int kRows, class Real>
HWY_INLINE void ContextRowsInOrder(const OrderedContext<Real>& t, std::int64_t begin, std::int64_t end,
                                   std::int64_t row, std::int64_t c) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const bool first = begin == 0;
  const std::int64_t last = t.keys + t.ahead - 1;
  float* const context = t.context + row * t.columns + c;
  const float* const probs = t.probs + row * t.row_stride;
  const float* const rescale = t.rescale + row;
  OrderedSums r0 = LoadSums(context, rescale[0], first), r1 = r0, r2 = r0, r3 = r0;
  if constexpr (kRows > 1) r1 = LoadSums(context + t.columns, rescale[1], first);
  if constexpr (kRows > 2) r2 = LoadSums(context + 2 * t.columns, rescale[2], first);
  if constexpr (kRows > 3) r3 = LoadSums(context + 3 * t.columns, rescale[3], first);
  for (std::int64_t i = begin; i < end; ++i) {
    const Real* const at = reinterpret_cast<const Real*>(t.values[i]) + c;
    if (kPrefetchRows && row == 0) {
      const Real* const next = reinterpret_cast<const Real*>(t.values[std::min(i + kValuesAhead, last)]) + c;
      for (std::int64_t line = 0; line < 4 * lanes; line += kLineElements<Real>) hwy::Prefetch(next + line);
    }
    const TileVector v0 = LoadAsF32(d, at), v1 = LoadAsF32(d, at + lanes);
    const TileVector v2 = LoadAsF32(d, at + 2 * lanes), v3 = LoadAsF32(d, at + 3 * lanes);
    const auto add = [&](int r, OrderedSums& sums) TILE_LAMBDA {
      const TileVector prob = hn::Set(d, probs[r * t.row_stride + i]);
      sums.s0 = hn::MulAdd(prob, v0, sums.s0);
      sums.s1 = hn::MulAdd(prob, v1, sums.s1);
      sums.s2 = hn::MulAdd(prob, v2, sums.s2);
      sums.s3 = hn::MulAdd(prob, v3, sums.s3);
    };
    add(0, r0);
    if constexpr (kRows > 1) add(1, r1);
    if constexpr (kRows > 2) add(2, r2);
    if constexpr (kRows > 3) add(3, r3);
  }
  StoreSums(r0, context);
  if constexpr (kRows > 1) StoreSums(r1, context + t.columns);
  if constexpr (kRows > 2) StoreSums(r2, context + 2 * t.columns);
  if constexpr (kRows > 3) StoreSums(r3, context + 3 * t.columns);
}

/// What is left of the columns, a vector or an element at a time; an element by the vector's arithmetic.
template <class Real>
HWY_INLINE void ContextRestInOrder(const OrderedContext<Real>& t, std::int64_t row, std::int64_t begin) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const float* const probs = t.probs + row * t.row_stride;
  float* const context = t.context + row * t.columns;
  const auto rescale = hn::Set(d, t.rescale[row]);
  std::int64_t c = begin;
  for (; c + lanes <= t.columns; c += lanes) {
    auto sum = hn::Mul(rescale, hn::LoadU(d, context + c));
    for (std::int64_t i = 0; i < t.keys; ++i) {
      sum = hn::MulAdd(hn::Set(d, probs[i]), LoadAsF32(d, reinterpret_cast<const Real*>(t.values[i]) + c), sum);
    }
    hn::StoreU(sum, d, context + c);
  }
  for (; c < t.columns; ++c) {
    auto sum = hn::Mul(rescale, hn::Set(d, context[c]));
    for (std::int64_t i = 0; i < t.keys; ++i) {
      const float value = widen(reinterpret_cast<const Real*>(t.values[i])[c]);
      sum = hn::MulAdd(hn::Set(d, probs[i]), hn::Set(d, value), sum);
    }
    context[c] = hn::GetLane(sum);
  }
}

template <class Real>
inline void ContextInOrder(const OrderedContext<Real>& t) {
  constexpr int kMost = kHas32Registers ? 4 : 2;  // 16 accumulators with 32 registers, 8 with 16
  const std::int64_t four = 4 * hn::Lanes(TileTag());
  for (std::int64_t begin = 0; begin < t.keys; begin += kKeysInTurn) {
    const std::int64_t end = std::min(begin + kKeysInTurn, t.keys);
    for (std::int64_t c = 0; c + four <= t.columns; c += four) {
      std::int64_t row = 0;
      for (; row + kMost <= t.rows; row += kMost) ContextRowsInOrder<kMost>(t, begin, end, row, c);
      if constexpr (kMost > 2) {
        for (; row + 2 <= t.rows; row += 2) ContextRowsInOrder<2>(t, begin, end, row, c);
      }
      for (; row < t.rows; ++row) ContextRowsInOrder<1>(t, begin, end, row, c);
    }
  }
  for (std::int64_t row = 0; row < t.rows; ++row) ContextRestInOrder(t, row, t.columns / four * four);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_FEW_IN_ORDER_INL_H_
