// The steps of few_queries.h for one SIMD target: dot products with the head width on lanes, four keys and a few rows
// at a time.
#if defined(HEADWAY_OPS_SIMD_FEW_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_FEW_QUERIES_INL_H_
#undef HEADWAY_OPS_SIMD_FEW_QUERIES_INL_H_
#else
#define HEADWAY_OPS_SIMD_FEW_QUERIES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/cache_control.h"
#include "ops/simd/bf16-inl.h"
#include "ops/simd/f16-inl.h"
#include "ops/simd/few_queries.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/softmax-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows that share one reading of four keys: 16 accumulators with 32 registers, 8 with 16.
inline constexpr int kRowsAtOnce = kHas32Registers ? 4 : 2;

/// Four vectors, one per stream (or per column of four): named, because arrays of vectors end up on the stack.
struct FourVectors {
  TileVector s0, s1, s2, s3;
};
HWY_INLINE FourVectors ZeroFour() {
  const TileVector zero = hn::Zero(TileTag());
  return {zero, zero, zero, zero};
}

HWY_INLINE void DotStep(const float* q, std::int64_t c, const FourVectors& k, FourVectors& sum) {
  const TileVector x = hn::LoadU(TileTag(), q + c);
  sum.s0 = hn::MulAdd(x, k.s0, sum.s0);
  sum.s1 = hn::MulAdd(x, k.s1, sum.s1);
  sum.s2 = hn::MulAdd(x, k.s2, sum.s2);
  sum.s3 = hn::MulAdd(x, k.s3, sum.s3);
}

HWY_INLINE float Total(TileVector v) { return hn::GetLane(hn::SumOfLanes(TileTag(), v)); }

#if HWY_TARGET != HWY_SCALAR
/// The sum of all 128-bit blocks.
template <class D>
HWY_INLINE auto AddBlocks([[maybe_unused]] D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return AddBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

/// The sums of all lanes of each. Together they take 13 operations with 16 lanes; one by one 32, as many as the
/// products of a row of 128.
HWY_INLINE void Totals(const FourVectors& v, float (&total)[4]) {
#if HWY_TARGET == HWY_SCALAR
  total[0] = Total(v.s0), total[1] = Total(v.s1), total[2] = Total(v.s2), total[3] = Total(v.s3);
#else
  const TileTag d;
  const hn::Repartition<double, TileTag> d64;
  const auto add_pairs = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto low = add_pairs(v.s0, v.s1), high = add_pairs(v.s2, v.s3);
  const auto blocks =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, low, high)), hn::BitCast(d, hn::InterleaveUpper(d64, low, high)));
  hn::StoreU(AddBlocks(d, blocks), hn::CappedTag<float, 4>(), total);
#endif
}

/// Whether rows are prefetched a few steps before they are read: with AVX-512 the hardware prefetcher is too late (a
/// tenth of the time, Intel). With AVX2 on Zen 3 it is early enough, and software prefetch costs a quarter.
inline constexpr bool kPrefetchRows = HWY_TARGET <= HWY_AVX3;
template <class Real>
inline constexpr std::int64_t kLineElements = 64 / sizeof(Real);

/// Scores of kRows rows, from `row` on, against step `i` of the four streams.
template <int kRows, class Scores, class Real = typename Scores::Element>
HWY_INLINE void ScoreStep(const Scores& t, std::int64_t row, const Real* const (&k)[kKeyStreams], std::int64_t i) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const float* q = t.queries + row * t.depth;
  FourVectors r0 = ZeroFour(), r1 = r0, r2 = r0, r3 = r0;
  std::int64_t c = 0;
  for (; c + lanes <= t.depth; c += lanes) {
    // One line of each stream at a time: a whole row at once would fill the line fill buffers and delay the loads of
    // this step (4 to 7 points of the best read bandwidth).
    if (kPrefetchRows && row == 0 && c % kLineElements<Real> == 0) {
      for (int s = 0; s < kKeyStreams; ++s) hwy::Prefetch(t.row(s, i + kPrefetchSteps) + c);
    }
    const FourVectors key = {LoadAsF32(TileTag(), k[0] + c), LoadAsF32(TileTag(), k[1] + c),
                             LoadAsF32(TileTag(), k[2] + c), LoadAsF32(TileTag(), k[3] + c)};
    DotStep(q, c, key, r0);
    if constexpr (kRows > 1) DotStep(q + t.depth, c, key, r1);
    if constexpr (kRows > 2) DotStep(q + 2 * t.depth, c, key, r2);
    if constexpr (kRows > 3) DotStep(q + 3 * t.depth, c, key, r3);
  }
  const auto finish = [&](int r, const FourVectors& sum) HWY_ATTR {
    float total[kKeyStreams];
    Totals(sum, total);
    for (std::int64_t rest = c; rest < t.depth; ++rest) {
      for (int s = 0; s < kKeyStreams; ++s) total[s] += q[r * t.depth + rest] * widen(k[s][rest]);
    }
    float* to = t.scores + (row + r) * t.row_stride + i;
    for (int s = 0; s < kKeyStreams; ++s) to[s * t.steps] = total[s];
  };
  finish(0, r0);
  if constexpr (kRows > 1) finish(1, r1);
  if constexpr (kRows > 2) finish(2, r2);
  if constexpr (kRows > 3) finish(3, r3);
}

template <class Scores>
inline void ScoreFew(const Scores& t) {
  for (std::int64_t i = 0; i < t.steps; ++i) {
    const typename Scores::Element* const k[kKeyStreams] = {t.row(0, i), t.row(1, i), t.row(2, i), t.row(3, i)};
    std::int64_t row = 0;
    for (; row + kRowsAtOnce <= t.rows; row += kRowsAtOnce) ScoreStep<kRowsAtOnce>(t, row, k, i);
    if (kRowsAtOnce > 2 && t.rows - row >= 2) {
      ScoreStep<2>(t, row, k, i);
      row += 2;
    }
    if (row < t.rows) ScoreStep<1>(t, row, k, i);
  }
}

inline void SoftmaxFew(const FewSoftmax& t) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const float highest = RowMax(t.scores, t.n, *t.maximum);
  const auto shift = hn::Set(d, highest);
  const auto exp_of = [&](float x) HWY_ATTR { return hn::GetLane(Exp(d, hn::Set(d, x - highest))); };
  auto sums = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const auto p = Exp(d, hn::Sub(hn::LoadU(d, t.scores + i), shift));
    hn::StoreU(p, d, t.scores + i);
    sums = hn::Add(sums, p);
  }
  float sum = Total(sums);
  for (; i < t.n; ++i) sum += t.scores[i] = exp_of(t.scores[i]);
  *t.rescale = exp_of(*t.maximum);
  *t.sum = *t.sum * *t.rescale + sum;
  *t.maximum = highest;
}

/// Steps of the streams whose values are added together: they stay in the first-level cache for all columns and rows.
struct Steps {
  std::int64_t begin, end;
};
inline constexpr std::int64_t kStepsInTurn = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

/// Columns [c, c + kWide · 4 vectors) of kRows rows.
template <int kRows, int kWide, class Context, class Real = typename Context::Element>
HWY_INLINE void ContextColumns(const Context& t, const Steps& steps, std::int64_t row, std::int64_t c) {
  static_assert(kRows * kWide <= 4, "there are four sets of accumulators");
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  FourVectors r0 = ZeroFour(), r1 = r0, r2 = r0, r3 = r0;
  const float* p = t.scores + row * t.row_stride;
  const auto for_each_row = [&](int wide, auto fn) HWY_ATTR {
    fn(0, wide == 0 ? r0 : wide == 1 ? r1 : wide == 2 ? r2 : r3);
    if constexpr (kRows > 1) fn(1, kWide == 1 ? r1 : wide == 0 ? r2 : r3);
    if constexpr (kRows > 2) fn(2, r2);
    if constexpr (kRows > 3) fn(3, r3);
  };
  for (std::int64_t i = steps.begin; i < steps.end; ++i) {
    for (int s = 0; s < kKeyStreams; ++s) {
      const Real* v = t.row(s, i) + c;
      if (kPrefetchRows && row == 0) {
        const Real* const next = t.row(s, i + kPrefetchSteps) + c;
        for (std::int64_t line = 0; line < kWide * 4 * lanes; line += kLineElements<Real>) hwy::Prefetch(next + line);
      }
#pragma GCC unroll 4
      for (int wide = 0; wide < kWide; ++wide) {
        const Real* at = v + wide * 4 * lanes;
        const FourVectors value = {LoadAsF32(TileTag(), at), LoadAsF32(TileTag(), at + lanes),
                                   LoadAsF32(TileTag(), at + 2 * lanes), LoadAsF32(TileTag(), at + 3 * lanes)};
        for_each_row(wide, [&](int r, FourVectors& sum) HWY_ATTR {
          const TileVector prob = hn::Set(d, p[r * t.row_stride + s * t.steps + i]);
          sum.s0 = hn::MulAdd(prob, value.s0, sum.s0);
          sum.s1 = hn::MulAdd(prob, value.s1, sum.s1);
          sum.s2 = hn::MulAdd(prob, value.s2, sum.s2);
          sum.s3 = hn::MulAdd(prob, value.s3, sum.s3);
        });
      }
    }
  }
#pragma GCC unroll 4
  for (int wide = 0; wide < kWide; ++wide) {
    for_each_row(wide, [&](int r, const FourVectors& sum) HWY_ATTR {
      const TileVector rescale = hn::Set(d, steps.begin == 0 ? t.rescale[row + r] : 1.0f);
      float* to = t.context + (row + r) * t.columns + c + wide * 4 * lanes;
      hn::StoreU(hn::MulAdd(rescale, hn::LoadU(d, to), sum.s0), d, to);
      hn::StoreU(hn::MulAdd(rescale, hn::LoadU(d, to + lanes), sum.s1), d, to + lanes);
      hn::StoreU(hn::MulAdd(rescale, hn::LoadU(d, to + 2 * lanes), sum.s2), d, to + 2 * lanes);
      hn::StoreU(hn::MulAdd(rescale, hn::LoadU(d, to + 3 * lanes), sum.s3), d, to + 3 * lanes);
    });
  }
}

/// What is left of the columns, a vector or an element at a time.
template <class Context>
HWY_INLINE void ContextRest(const Context& t, std::int64_t row, std::int64_t begin) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const float* p = t.scores + row * t.row_stride;
  float* to = t.context + row * t.columns;
  std::int64_t c = begin;
  for (; c + lanes <= t.columns; c += lanes) {
    auto sum = hn::Mul(hn::Set(d, t.rescale[row]), hn::LoadU(d, to + c));
    for (int s = 0; s < kKeyStreams; ++s) {
      for (std::int64_t i = 0; i < t.steps; ++i) {
        sum = hn::MulAdd(hn::Set(d, p[s * t.steps + i]), LoadAsF32(TileTag(), t.row(s, i) + c), sum);
      }
    }
    hn::StoreU(sum, d, to + c);
  }
  for (; c < t.columns; ++c) {
    float sum = t.rescale[row] * to[c];
    for (int s = 0; s < kKeyStreams; ++s) {
      for (std::int64_t i = 0; i < t.steps; ++i) sum += p[s * t.steps + i] * widen(t.row(s, i)[c]);
    }
    to[c] = sum;
  }
}

template <class Context>
HWY_INLINE void ContextSteps(const Context& t, const Steps& steps) {
  const std::int64_t four = 4 * hn::Lanes(TileTag());
  std::int64_t c = 0;
  // Value rows are best read whole: a single query row leaves registers for kWide times as many columns.
  if (t.rows == 1) {
    constexpr int kWide = kRowsAtOnce;
    for (; c + kWide * four <= t.columns; c += kWide * four) ContextColumns<1, kWide>(t, steps, 0, c);
    if (kWide > 2 && c + 2 * four <= t.columns) {
      ContextColumns<1, 2>(t, steps, 0, c);
      c += 2 * four;
    }
  }
  for (; c + four <= t.columns; c += four) {
    std::int64_t row = 0;
    for (; row + kRowsAtOnce <= t.rows; row += kRowsAtOnce) ContextColumns<kRowsAtOnce, 1>(t, steps, row, c);
    if (kRowsAtOnce > 2 && t.rows - row >= 2) {
      ContextColumns<2, 1>(t, steps, row, c);
      row += 2;
    }
    if (row < t.rows) ContextColumns<1, 1>(t, steps, row, c);
  }
}

template <class Context>
inline void ContextFew(const Context& t) {
  for (std::int64_t i = 0; i < t.steps; i += kStepsInTurn) {
    ContextSteps(t, {i, std::min(i + kStepsInTurn, t.steps)});
  }
  const std::int64_t four = 4 * hn::Lanes(TileTag());
  for (std::int64_t row = 0; row < t.rows; ++row) ContextRest(t, row, t.columns / four * four);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_FEW_QUERIES_INL_H_
