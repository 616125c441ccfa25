// Rows of memory to panels with rows on lanes and back: blockwise 4 × 4 transposes, with the scale folded in. Knows
// nothing of attention.
#if defined(HEADWAY_OPS_SIMD_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_PANEL_INL_H_
#undef HEADWAY_OPS_SIMD_PANEL_INL_H_
#else
#define HEADWAY_OPS_SIMD_PANEL_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

/// The four floats at `column` of rows r, r + 4, r + 8, …, one row a 128-bit block.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* const* rows, std::int64_t column) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, rows + hn::MaxLanes(D()) / 8, column), LoadBlocks(half, rows, column));
  }
}

/// The inverse of LoadBlocks.
template <class D>
HWY_INLINE void StoreBlocks(D d, hn::Vec<D> v, float* const* rows, std::int64_t column) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    StoreBlocks(half, hn::LowerHalf(half, v), rows, column);
    StoreBlocks(half, hn::UpperHalf(half, v), rows + hn::MaxLanes(D()) / 8, column);
  }
}

/// Transposes the 4 × 4 matrix of each 128-bit block.
HWY_INLINE void Transpose4(TileVector& a, TileVector& b, TileVector& c, TileVector& e) {
  const TileTag d;
  const hn::Repartition<double, TileTag> d64;
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low));
  b = hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low));
  c = hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high));
  e = hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high));
}

#endif  // HWY_TARGET != HWY_SCALAR

/// Columns [0, returned) of the lanes [lane, lane + Lanes), four at a time; the caller does the rest one by one.
HWY_INLINE std::int64_t LoadLanes([[maybe_unused]] const LoadPanel& t, [[maybe_unused]] std::int64_t group,
                                  [[maybe_unused]] std::int64_t lane) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.column_stride != 1) return 0;
  const TileTag d;
  const auto scale = hn::Set(d, t.scale);
  // Row order within a vector: block b of the r-th load holds row 4·b + r, so that after the transpose of blocks the
  // lanes are in order.
  const float* rows[hn::MaxLanes(TileTag())];
  constexpr int kBlocks = hn::MaxLanes(TileTag()) / 4;
  for (int r = 0; r < 4; ++r) {
    for (int b = 0; b < kBlocks; ++b) rows[r * kBlocks + b] = t.rows[lane + 4 * b + r];
  }
  using D = TileTag;
  for (; c + 4 <= t.columns; c += 4) {
    TileVector v0 = LoadBlocks(D(), rows, c);
    TileVector v1 = LoadBlocks(D(), rows + kBlocks, c);
    TileVector v2 = LoadBlocks(D(), rows + 2 * kBlocks, c);
    TileVector v3 = LoadBlocks(D(), rows + 3 * kBlocks, c);
    Transpose4(v0, v1, v2, v3);
    float* HWY_RESTRICT to = t.panel + c * group + lane;
    hn::Store(hn::Mul(scale, v0), d, to);
    hn::Store(hn::Mul(scale, v1), d, to + group);
    hn::Store(hn::Mul(scale, v2), d, to + 2 * group);
    hn::Store(hn::Mul(scale, v3), d, to + 3 * group);
  }
#endif
  return c;
}

inline void Load(const LoadPanel& t) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t group = t.vectors * lanes;
  for (std::int64_t lane = 0; lane < group; lane += lanes) {
    for (std::int64_t c = LoadLanes(t, group, lane); c < t.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        t.panel[c * group + lane + i] = t.scale * t.rows[lane + i][c * t.column_stride];
      }
    }
  }
}

HWY_INLINE std::int64_t StoreLanes([[maybe_unused]] const StorePanel& t, [[maybe_unused]] std::int64_t group,
                                   [[maybe_unused]] std::int64_t lane) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.column_stride != 1) return 0;
  const TileTag d;
  const auto factor = t.factor != nullptr ? hn::Load(d, t.factor + lane) : hn::Set(d, 1.0f);
  float* rows[hn::MaxLanes(TileTag())];
  constexpr int kBlocks = hn::MaxLanes(TileTag()) / 4;
  for (int r = 0; r < 4; ++r) {
    for (int b = 0; b < kBlocks; ++b) rows[r * kBlocks + b] = t.rows[lane + 4 * b + r];
  }
  for (; c + 4 <= t.columns; c += 4) {
    const float* HWY_RESTRICT from = t.panel + c * group + lane;
    TileVector v0 = hn::Mul(factor, hn::Load(d, from));
    TileVector v1 = hn::Mul(factor, hn::Load(d, from + group));
    TileVector v2 = hn::Mul(factor, hn::Load(d, from + 2 * group));
    TileVector v3 = hn::Mul(factor, hn::Load(d, from + 3 * group));
    Transpose4(v0, v1, v2, v3);
    StoreBlocks(d, v0, rows, c);
    StoreBlocks(d, v1, rows + kBlocks, c);
    StoreBlocks(d, v2, rows + 2 * kBlocks, c);
    StoreBlocks(d, v3, rows + 3 * kBlocks, c);
  }
#endif
  return c;
}

inline void Store(const StorePanel& t) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t group = t.vectors * lanes;
  for (std::int64_t lane = 0; lane < group; lane += lanes) {
    for (std::int64_t c = StoreLanes(t, group, lane); c < t.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const float factor = t.factor != nullptr ? t.factor[lane + i] : 1.0f;
        t.rows[lane + i][c * t.column_stride] = factor * t.panel[c * group + lane + i];
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_PANEL_INL_H_
