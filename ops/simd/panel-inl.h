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

/// The inverse of LoadPieces.
template <class D>
HWY_INLINE void StorePieces(D d, hn::Vec<D> v, hn::TFromD<D>* const* rows, std::int64_t column) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    StorePieces(half, hn::LowerHalf(half, v), rows, column);
    StorePieces(half, hn::UpperHalf(half, v), rows + hn::MaxLanes(D()) / 8, column);
  }
}

/// As f32, one row a 128-bit block.
HWY_INLINE TileVector LoadBlocks(const float* const* rows, std::int64_t column) {
  return LoadPieces(TileTag(), rows, column);
}
HWY_INLINE TileVector LoadBlocks(const std::uint16_t* const* rows, std::int64_t column) {
  return WidenBits(TileTag(), LoadPieces(Bf16Tag<TileTag>(), rows, column));
}
HWY_INLINE void StoreBlocks(TileVector v, float* const* rows, std::int64_t column) {
  StorePieces(TileTag(), v, rows, column);
}
HWY_INLINE void StoreBlocks(TileVector v, std::uint16_t* const* rows, std::int64_t column) {
  StorePieces(Bf16Tag<TileTag>(), NarrowBits(TileTag(), v), rows, column);
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
    Transpose4(v0, v1, v2, v3);
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

/// Four columns at a time, as LoadLanes; `products` becomes NaN where a value of its lane was NaN or infinity.
template <class T>
HWY_INLINE std::int64_t StoreLanes([[maybe_unused]] const StorePanel& t, [[maybe_unused]] std::int64_t group,
                                   [[maybe_unused]] std::int64_t lane, [[maybe_unused]] TileVector& products) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.column_stride != 1) return 0;
  const TileTag d;
  const auto zero = hn::Zero(d);
  const auto factor = t.factor != nullptr ? hn::Load(d, t.factor + lane) : hn::Set(d, 1.0f);
  using Bits = RowBits<T>;
  Bits* rows[hn::MaxLanes(TileTag())];
  constexpr int kBlocks = hn::MaxLanes(TileTag()) / 4;
  for (int r = 0; r < 4; ++r) {
    for (int b = 0; b < kBlocks; ++b) rows[r * kBlocks + b] = reinterpret_cast<Bits*>(t.rows[lane + 4 * b + r]);
  }
  for (; c + 4 <= t.columns; c += 4) {
    const float* HWY_RESTRICT from = t.panel + c * group + lane;
    TileVector v0 = hn::Mul(factor, hn::Load(d, from));
    TileVector v1 = hn::Mul(factor, hn::Load(d, from + group));
    TileVector v2 = hn::Mul(factor, hn::Load(d, from + 2 * group));
    TileVector v3 = hn::Mul(factor, hn::Load(d, from + 3 * group));
    products = hn::MulAdd(zero, v0, products);
    products = hn::MulAdd(zero, v1, products);
    products = hn::MulAdd(zero, v2, products);
    products = hn::MulAdd(zero, v3, products);
    Transpose4(v0, v1, v2, v3);
    StoreBlocks(v0, rows, c);
    StoreBlocks(v1, rows + kBlocks, c);
    StoreBlocks(v2, rows + 2 * kBlocks, c);
    StoreBlocks(v3, rows + 3 * kBlocks, c);
  }
#endif
  return c;
}

template <class T>
inline bool Store(const StorePanel& t) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t group = t.vectors * lanes;
  TileVector products = hn::Zero(d);
  float product = 0;
  for (std::int64_t lane = 0; lane < group; lane += lanes) {
    for (std::int64_t c = StoreLanes<T>(t, group, lane, products); c < t.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const float value = (t.factor != nullptr ? t.factor[lane + i] : 1.0f) * t.panel[c * group + lane + i];
        product += 0.0f * value;
        StoreOne(value, reinterpret_cast<T*>(t.rows[lane + i]) + c * t.column_stride);
      }
    }
  }
  return product == 0.0f && hn::AllTrue(d, hn::Eq(products, hn::Zero(d)));
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
