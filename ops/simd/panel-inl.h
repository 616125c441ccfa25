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

/// The four elements at `column` of rows r, r + 4, r + 8, …, each row's beside those of the row before it.
template <class D>
HWY_INLINE hn::Vec<D> LoadPieces(D d, const hn::TFromD<D>* const* rows, std::int64_t column) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadPieces(half, rows + hn::MaxLanes(D()) / 8, column), LoadPieces(half, rows, column));
  }
}

/// The same of rows `stride` apart.
template <class D>
HWY_INLINE hn::Vec<D> LoadPieces(D d, const float* at, std::int64_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::Load(d, at);
  } else {
    const hn::Half<D> half;
    const float* const upper = at + static_cast<std::int64_t>(hn::MaxLanes(D()) / 8) * stride;
    return hn::Combine(d, LoadPieces(half, upper, stride), LoadPieces(half, at, stride));
  }
}

/// As f32, one row a 128-bit block.
HWY_INLINE TileVector LoadBlocks(const float* const* rows, std::int64_t column) {
  return LoadPieces(TileTag(), rows, column);
}
HWY_INLINE TileVector LoadBlocks(const std::uint16_t* const* rows, std::int64_t column) {
  return WidenBits(TileTag(), LoadPieces(Bf16Tag<TileTag>(), rows, column));
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

/// How rows of T are loaded and stored: bf16 as bits.
template <class T>
using RowBits = std::conditional_t<std::is_same_v<T, BFloat16>, std::uint16_t, T>;

/// Columns [0, returned) of the lanes [lane, lane + Lanes), four at a time; the caller does the rest one by one.
/// Without the scale every bit arrives as it was.
template <class T, bool kScaled = true>
HWY_INLINE std::int64_t LoadLanes([[maybe_unused]] const LoadPanel& t, [[maybe_unused]] std::int64_t group,
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
    float* HWY_RESTRICT to = t.panel + c * group + lane;
    hn::Store(kScaled ? hn::Mul(scale, v0) : v0, d, to);
    hn::Store(kScaled ? hn::Mul(scale, v1) : v1, d, to + group);
    hn::Store(kScaled ? hn::Mul(scale, v2) : v2, d, to + 2 * group);
    hn::Store(kScaled ? hn::Mul(scale, v3) : v3, d, to + 3 * group);
  }
#endif
  return c;
}

template <class T>
inline void Load(const LoadPanel& t) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t group = t.vectors * lanes;
  for (std::int64_t lane = 0; lane < group; lane += lanes) {
    for (std::int64_t c = LoadLanes<T>(t, group, lane); c < t.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const T* row = reinterpret_cast<const T*>(t.rows[lane + i]);
        t.panel[c * group + lane + i] = t.scale * widen(row[c * t.column_stride]);
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

/// Columns [c, returned) of the four lanes from `lane` on, a vector of each row at a time: rows are far from the core,
/// the panel is near, so that the pieces are taken there. `finite` becomes false where a value was NaN or infinity.
template <class T, class D>
HWY_INLINE std::int64_t StoreFourRows(D d, const StorePanel& t, std::int64_t lane, std::int64_t c, bool& finite) {
  constexpr auto kColumns = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if (c + kColumns > t.columns) return c;
  const std::int64_t group = t.vectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  const auto zero = hn::Zero(d);
  const auto factor = t.factor != nullptr ? hn::LoadDup128(d, t.factor + lane) : hn::Set(d, 1.0f);
  T* const r0 = reinterpret_cast<T*>(t.rows[lane]);
  T* const r1 = reinterpret_cast<T*>(t.rows[lane + 1]);
  T* const r2 = reinterpret_cast<T*>(t.rows[lane + 2]);
  T* const r3 = reinterpret_cast<T*>(t.rows[lane + 3]);
  auto n0 = zero, n1 = zero, n2 = zero, n3 = zero;  // NaN once 0·NaN or 0·∞ was added
  for (; c + kColumns <= t.columns; c += kColumns) {
    const float* HWY_RESTRICT from = t.panel + c * group + lane;
    auto v0 = hn::Mul(factor, LoadPieces(d, from, 4 * group));
    auto v1 = hn::Mul(factor, LoadPieces(d, from + group, 4 * group));
    auto v2 = hn::Mul(factor, LoadPieces(d, from + 2 * group, 4 * group));
    auto v3 = hn::Mul(factor, LoadPieces(d, from + 3 * group, 4 * group));
    n0 = hn::MulAdd(zero, v0, n0);
    n1 = hn::MulAdd(zero, v1, n1);
    n2 = hn::MulAdd(zero, v2, n2);
    n3 = hn::MulAdd(zero, v3, n3);
    Transpose4(d, v0, v1, v2, v3);
    StoreFromF32(v0, d, r0 + c);
    StoreFromF32(v1, d, r1 + c);
    StoreFromF32(v2, d, r2 + c);
    StoreFromF32(v3, d, r3 + c);
  }
  const auto sum = hn::Add(hn::Add(n0, n1), hn::Add(n2, n3));
  finite = finite && hn::AllTrue(d, hn::Eq(sum, zero));
  if constexpr (kColumns > 4) return StoreFourRows<T>(hn::Half<D>(), t, lane, c, finite);
  return c;
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
inline bool Store(const StorePanel& t) {
  const std::int64_t group = t.vectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  bool finite = true;
  float product = 0;
  constexpr std::int64_t kRows = HWY_TARGET == HWY_SCALAR ? 1 : 4;
  for (std::int64_t lane = 0; lane < group; lane += kRows) {
    std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    if (t.column_stride == 1) c = StoreFourRows<T>(TileTag(), t, lane, c, finite);
#endif
    for (; c < t.columns; ++c) {
      for (std::int64_t i = 0; i < kRows; ++i) {
        const float value = (t.factor != nullptr ? t.factor[lane + i] : 1.0f) * t.panel[c * group + lane + i];
        product += 0.0f * value;
        StoreOne(value, reinterpret_cast<T*>(t.rows[lane + i]) + c * t.column_stride);
      }
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
