// Rows of memory, f32 or bf16, to f32 panels with rows on lanes and back: blockwise 4 × 4 transposes, with the scale
// folded in; and rows of bf16 to rows of f32. Knows nothing of attention.
#if defined(HEADWAY_OPS_SIMD_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_PANEL_INL_H_
#undef HEADWAY_OPS_SIMD_PANEL_INL_H_
#else
#define HEADWAY_OPS_SIMD_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/bf16-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

/// A vector of four elements each of row(0), row(1), …, from column 0 on.
template <class D, class Row>
HWY_INLINE hn::Vec<D> LoadFours(D d, Row row) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
  // One by one: an insert reads from memory, while combining halves costs a shuffle.
  if constexpr (hn::MaxLanes(D()) == 16 && std::is_same_v<hn::TFromD<D>, float>) {
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(row(0)));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row(1)), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row(2)), 2);
    return hn::Vec<D>{_mm512_insertf32x4(v, _mm_loadu_ps(row(3)), 3)};
  }
#endif
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, row(0));
  } else {
    const hn::Half<D> half;
    constexpr int kUpper = static_cast<int>(hn::MaxLanes(D()) / 8);
    const auto upper = LoadFours(half, [&](int i) HWY_ATTR { return row(i + kUpper); });
    return hn::Combine(d, upper, LoadFours(half, row));
  }
}

/// As f32, one row per 128-bit block.
HWY_INLINE TileVector LoadBlocks(const float* const* rows, std::int64_t column) {
  return LoadFours(TileTag(), [&](int i) HWY_ATTR { return rows[i] + column; });
}
HWY_INLINE TileVector LoadBlocks(const std::uint16_t* const* rows, std::int64_t column) {
  return WidenBits(TileTag(), LoadFours(Bf16Tag<TileTag>(), [&](int i) HWY_ATTR { return rows[i] + column; }));
}

/// Transposes the 4 × 4 matrix of each 128-bit block.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Transpose4(D d, V& a, V& b, V& c, V& e) {
  const hn::Repartition<double, D> d64;
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

/// How rows of T are loaded: bf16 as bits.
template <class T>
using RowBits = std::conditional_t<std::is_same_v<T, BFloat16>, std::uint16_t, T>;

/// Columns [0, returned) of the lanes [lane, lane + Lanes), four at a time; the caller does the rest one by one.
/// Without the scale every bit is copied.
template <class T, bool kScaled = true>
HWY_INLINE std::int64_t LoadLanes([[maybe_unused]] const LoadPanel& t, [[maybe_unused]] std::int64_t tile_lanes,
                                  [[maybe_unused]] std::int64_t lane) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.column_stride != 1) return 0;
  const TileTag d;
  const auto scale = hn::Set(d, t.scale);
  // Row order within a vector: block b of the r-th load holds row 4·b + r, so that after the transpose of blocks the
  // lanes are in order.
  using Bits = RowBits<T>;
  const Bits* rows[hn::MaxLanes(TileTag())];
  constexpr int kBlocks = hn::MaxLanes(TileTag()) / 4;
  for (int r = 0; r < 4; ++r) {
    for (int b = 0; b < kBlocks; ++b) rows[r * kBlocks + b] = reinterpret_cast<const Bits*>(t.rows[lane + 4 * b + r]);
  }
  for (; c + 4 <= t.columns; c += 4) {
    TileVector v0 = LoadBlocks(rows, c);
    TileVector v1 = LoadBlocks(rows + kBlocks, c);
    TileVector v2 = LoadBlocks(rows + 2 * kBlocks, c);
    TileVector v3 = LoadBlocks(rows + 3 * kBlocks, c);
    Transpose4(d, v0, v1, v2, v3);
    float* HWY_RESTRICT to = t.panel + c * tile_lanes + lane;
    hn::Store(kScaled ? hn::Mul(scale, v0) : v0, d, to);
    hn::Store(kScaled ? hn::Mul(scale, v1) : v1, d, to + tile_lanes);
    hn::Store(kScaled ? hn::Mul(scale, v2) : v2, d, to + 2 * tile_lanes);
    hn::Store(kScaled ? hn::Mul(scale, v3) : v3, d, to + 3 * tile_lanes);
  }
#endif
  return c;
}

template <class T>
inline void Load(const LoadPanel& t) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t tile_lanes = t.vectors * lanes;
  for (std::int64_t lane = 0; lane < tile_lanes; lane += lanes) {
    for (std::int64_t c = LoadLanes<T>(t, tile_lanes, lane); c < t.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const T* row = reinterpret_cast<const T*>(t.rows[lane + i]);
        t.panel[c * tile_lanes + lane + i] = t.scale * widen(row[c * t.column_stride]);
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

/// Columns [c, returned) of all lanes, four rows at a time, a vector of each: whole vectors are stored to the rows,
/// which are far from the core, and fours are loaded from the panel, which is in cache. `finite` becomes false where a
/// value was NaN or infinity.
template <class T, class D>
HWY_INLINE std::int64_t StoreRows(D d, const StorePanel& t, std::int64_t c, bool& finite) {
  constexpr auto kColumns = static_cast<std::int64_t>(hn::MaxLanes(D()));
  const std::int64_t tile_lanes = t.vectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  const std::int64_t end = c + (t.columns - c) / kColumns * kColumns;
  const auto zero = hn::Zero(d);
  auto n0 = zero, n1 = zero, n2 = zero, n3 = zero;  // NaN once 0·NaN or 0·∞ was added
  for (std::int64_t lane = 0; lane < tile_lanes && c < end; lane += 4) {
    const auto factor = t.factor != nullptr ? hn::LoadDup128(d, t.factor + lane) : hn::Set(d, 1.0f);
    const auto fours = [&](const float* from)
                           HWY_ATTR { return [=](int i) HWY_ATTR { return from + 4 * i * tile_lanes; }; };
    T* const r0 = reinterpret_cast<T*>(t.rows[lane]);
    T* const r1 = reinterpret_cast<T*>(t.rows[lane + 1]);
    T* const r2 = reinterpret_cast<T*>(t.rows[lane + 2]);
    T* const r3 = reinterpret_cast<T*>(t.rows[lane + 3]);
    const float* HWY_RESTRICT from = t.panel + c * tile_lanes + lane;
    for (std::int64_t at = c; at < end; at += kColumns, from += kColumns * tile_lanes) {
      auto v0 = hn::Mul(factor, LoadFours(d, fours(from)));
      auto v1 = hn::Mul(factor, LoadFours(d, fours(from + tile_lanes)));
      auto v2 = hn::Mul(factor, LoadFours(d, fours(from + 2 * tile_lanes)));
      auto v3 = hn::Mul(factor, LoadFours(d, fours(from + 3 * tile_lanes)));
      n0 = hn::MulAdd(zero, v0, n0);
      n1 = hn::MulAdd(zero, v1, n1);
      n2 = hn::MulAdd(zero, v2, n2);
      n3 = hn::MulAdd(zero, v3, n3);
      Transpose4(d, v0, v1, v2, v3);
      StoreFromF32(v0, d, r0 + at);
      StoreFromF32(v1, d, r1 + at);
      StoreFromF32(v2, d, r2 + at);
      StoreFromF32(v3, d, r3 + at);
    }
  }
  finite = finite && hn::AllTrue(d, hn::Eq(hn::Add(hn::Add(n0, n1), hn::Add(n2, n3)), zero));
  if constexpr (kColumns > 4) return StoreRows<T>(hn::Half<D>(), t, end, finite);
  return end;
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
inline bool Store(const StorePanel& t) {
  const std::int64_t tile_lanes = t.vectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  bool finite = true;
  float product = 0;
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.column_stride == 1) c = StoreRows<T>(TileTag(), t, c, finite);
#endif
  for (; c < t.columns; ++c) {
    for (std::int64_t lane = 0; lane < tile_lanes; ++lane) {
      const float value = (t.factor != nullptr ? t.factor[lane] : 1.0f) * t.panel[c * tile_lanes + lane];
      product += 0.0f * value;
      StoreOne(value, reinterpret_cast<T*>(t.rows[lane]) + c * t.column_stride);
    }
  }
  return finite && product == 0.0f;
}

/// kColumns elements of every row to a panel of that width.
template <int kColumns>
HWY_INLINE void WidenPanel(const BFloat16* HWY_RESTRICT from, std::int64_t stride, std::int64_t rows,
                           float* HWY_RESTRICT to) {
  const hn::CappedTag<float, kColumns> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::CappedTag<float, kColumns>());
  static_assert(kColumns % kLanes == 0, "a panel is whole vectors wide");
  for (std::int64_t r = 0; r < rows; ++r, from += stride, to += kColumns) {
    for (std::int64_t c = 0; c < kColumns; c += kLanes) hn::StoreU(LoadAsF32(d, from + c), d, to + c);
  }
}

inline void WidenAll(const WidenRows& t) {
  const std::int64_t width = t.panel_columns != 0 ? t.panel_columns : t.columns;
  float* to = t.to;
  for (std::int64_t c = 0; c < t.columns; c += width, to += t.rows * width) {
    const BFloat16* from = t.from + c;
    if (width == kValueColumns && c + width <= t.columns) {
      WidenPanel<kValueColumns>(from, t.row_stride, t.rows, to);
      continue;
    }
    const std::int64_t columns = std::min(width, t.columns - c);
    for (std::int64_t r = 0; r < t.rows; ++r) Widen(from + r * t.row_stride, to + r * width, columns);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_PANEL_INL_H_
