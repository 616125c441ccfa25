// The packed GEMM for one SIMD target: slices of depth outermost, then panels, so that one slice of a panel stays in
// the second-level cache for all rows of x. And the steps of a register tile that the bf16 GEMM shares. Rows of x are
// read where they lie: packing them costs more than it saves.
#if defined(HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#undef HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#else
#define HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#endif

#include "ops/simd/bf16-inl.h"
#include "ops/simd/packed_gemm.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of a full panel. kGemmRows × 4 take 24 of 32 registers and ten loads for 24 products, where the 8 × 3 of
/// attention take eleven: 92 to 97 % of the FMA peak instead of 86 to 90 (AVX-512, Intel). kGemmRows × 2 take 12 of 16.
inline constexpr int kGemmVectors = kHas32Registers ? 4 : 2;

/// The panel after this one, prefetched while the rows are multiplied: it is not in the second-level cache yet. Worth 2
/// to 6 points of the peak when weights are cold (AVX-512, Intel).
struct NextPanel {
  const char* at;
  std::int64_t step;  // bytes prefetched per step: less than a line, so that none is left out; 0: none
};

HWY_INLINE TileVector LoadWeight(const float* at) { return hn::Load(TileTag(), at); }
HWY_INLINE TileVector LoadWeight(const BFloat16* at) { return LoadAsF32(TileTag(), at); }

/// One step of depth; see Tile::Step.
template <int kRows, int kVectors, class W, class Scalar>
HWY_INLINE void GemmStep(Tile<kRows, kVectors>& tile, const W* HWY_RESTRICT b, Scalar a) {
  TileRow weights;
  ForEachVectorOfRow<kVectors>(weights,
                               [&](int v, TileVector& to) HWY_ATTR { to = LoadWeight(b + v * hn::Lanes(TileTag())); });
  tile.ForEachRow([&](int r, TileRow& row) HWY_ATTR { AccumulateRow<0, kVectors>(a(r), weights, row); });
}

/// Steps [k, end) of depth: the scalars x(row, step) against `panel`, which starts at step k.
template <int kRows, int kVectors, class X, class W>
HWY_INLINE void GemmSteps(Tile<kRows, kVectors>& tile, X x, std::int64_t k, std::int64_t end,
                          const W* HWY_RESTRICT panel, NextPanel& next) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(TileTag());
  // Unrolled for the widest tile only: the narrow ones at the edges cost more to compile than they would gain.
  constexpr int kTogether = kVectors == kGemmVectors && kRows == kGemmRows ? std::min(kStepsTogether, 4) : 1;
  const char* prefetch = next.at;
  for (; k + kTogether <= end; k += kTogether) {
#pragma GCC unroll 8
    for (int i = 0; i < kTogether; ++i) {
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += next.step;
      GemmStep(tile, panel + i * kWidth, [&](int r) HWY_ATTR { return x(r, k + i); });
    }
    panel += kTogether * kWidth;
  }
  for (; k < end; ++k, panel += kWidth) {
    GemmStep(tile, panel, [&](int r) HWY_ATTR { return x(r, k); });
  }
  next.at = prefetch;
}

/// Adds the sums [rows, width] of earlier steps to the tile.
template <int kRows, int kVectors>
HWY_INLINE void AddSums(Tile<kRows, kVectors>& tile, const float* sums) {
  const TileTag d;
  tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
    ForEachVectorOfRow<kVectors>(c, [&](int v, TileVector& s) HWY_ATTR {
      s = hn::Add(s, hn::Load(d, sums + (r * kVectors + v) * hn::Lanes(d)));
    });
  });
}

template <int kRows, int kVectors>
HWY_INLINE void KeepSums(Tile<kRows, kVectors>& tile, float* sums) {
  const TileTag d;
  tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
    ForEachVectorOfRow<kVectors>(
        c, [&](int v, TileVector& s) HWY_ATTR { hn::Store(s, d, sums + (r * kVectors + v) * hn::Lanes(d)); });
  });
}

/// Writes rows [row, row + kRows), without the padding columns.
template <int kRows, int kVectors, class W, class X>
HWY_INLINE void StoreTile(Tile<kRows, kVectors>& tile, const PackedGemmOf<W, X>& g, std::int64_t row,
                          std::int64_t column) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(TileTag());
  const TileTag d;
  const std::int64_t last = g.rows - 1 - row;
  const std::int64_t live = g.columns - column;
  const auto store = [&](TileRow& c, X* HWY_RESTRICT y) HWY_ATTR {
    ForEachVectorOfRow<kVectors>(c, [&](int v, TileVector& s) HWY_ATTR { StoreFromF32(s, d, y + v * hn::Lanes(d)); });
  };
  tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
    X* HWY_RESTRICT y = g.y + (row + std::min<std::int64_t>(r, last)) * g.y_stride + column;
    if (live >= kWidth) return store(c, y);
    HWY_ALIGN X all[kWidth];
    store(c, all);
    std::copy_n(all, live, y);
  });
}

/// Adds the bias and writes.
template <int kRows, int kVectors, class W, class X>
HWY_INLINE void FinishTile(Tile<kRows, kVectors>& tile, const PackedGemmOf<W, X>& g, std::int64_t row,
                           std::int64_t column) {
  const TileTag d;
  if (g.bias != nullptr) {
    TileRow bias;
    ForEachVectorOfRow<kVectors>(
        bias, [&](int v, TileVector& b) HWY_ATTR { b = hn::LoadU(d, g.bias + column + v * hn::Lanes(d)); });
    tile.ForEachRow([&](int, TileRow& c) HWY_ATTR {
      c.c0 = hn::Add(c.c0, bias.c0);
      if constexpr (kVectors > 1) c.c1 = hn::Add(c.c1, bias.c1);
      if constexpr (kVectors > 2) c.c2 = hn::Add(c.c2, bias.c2);
      if constexpr (kVectors > 3) c.c3 = hn::Add(c.c3, bias.c3);
    });
  }
  StoreTile(tile, g, row, column);
}

/// Steps [begin, end) of depth. The sums of earlier slices are in y.
struct GemmSlice {
  std::int64_t begin, end;
};

/// Loads the sums of rows [row, row + kRows) from y, in the layout of KeepSums.
template <int kRows, int kVectors>
HWY_INLINE void LoadSums(const PackedGemm& g, std::int64_t row, std::int64_t column, float* sums) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(TileTag());
  const std::int64_t live = std::min(g.columns - column, kWidth);
  for (std::int64_t r = 0; r < kRows; ++r) {
    std::copy_n(g.y + std::min(row + r, g.rows - 1) * g.y_stride + column, live, sums + r * kWidth);
  }
}

/// Rows [row, row + kRows) against a slice of one panel of kVectors vectors.
template <int kRows, int kVectors>
HWY_INLINE void GemmTile(const PackedGemm& g, std::int64_t row, const float* HWY_RESTRICT panel, std::int64_t column,
                         const GemmSlice& slice, NextPanel& next) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(TileTag());
  // Rows beyond the last repeat it, reading and writing: a tail costs a whole tile and no other memory is used.
  const std::int64_t last = g.rows - 1 - row;
  const float* HWY_RESTRICT x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = g.x + (row + std::min<std::int64_t>(r, last)) * g.x_stride;

  HWY_ALIGN float sums[kRows * kWidth];
  if (slice.begin > 0) LoadSums<kRows, kVectors>(g, row, column, sums);
  Tile<kRows, kVectors> tile;
  std::int64_t k = slice.begin;
  do {
    const std::int64_t end = std::min(k + kGemmDepthBlock, slice.end);
    const bool first = k == 0;
    tile.Clear();
    const auto scalar = [&](int r, std::int64_t at) HWY_ATTR { return x[r][at]; };
    GemmSteps(tile, scalar, k, end, panel + k * kWidth, next);
    k = end;
    if (!first) AddSums(tile, sums);
    if (k == slice.end) break;
    KeepSums(tile, sums);
  } while (true);
  if (k == g.depth) return FinishTile(tile, g, row, column);
  StoreTile(tile, g, row, column);
}

/// fn.template operator()<rows>(first row) for tiles of kGemmRows rows, the last one smaller where that is enough.
template <class Fn>
HWY_INLINE void ForEachRowTile(std::int64_t rows, Fn fn) {
  std::int64_t row = 0;
  for (; rows - row > 4; row += kGemmRows) fn.template operator()<kGemmRows>(row);
  if (rows - row > 2) {
    fn.template operator()<4>(row);
  } else if (rows - row > 0) {
    fn.template operator()<2>(row);
  }
}

template <int kVectors>
HWY_INLINE void GemmPanel(const PackedGemm& g, const float* panel, std::int64_t column, const GemmSlice& slice) {
  const std::int64_t width = kVectors * hn::Lanes(TileTag());
  // With few tiles per panel there is no time to prefetch.
  const std::int64_t tiles = g.rows / kGemmRows;
  const std::int64_t step = tiles < 4 ? 0 : static_cast<std::int64_t>(sizeof(float)) * (width / tiles + 1);
  NextPanel next{reinterpret_cast<const char*>(panel + width * (g.depth + slice.begin)), step};
  ForEachRowTile(g.rows, [&]<int kRows>(std::int64_t row)
                             HWY_ATTR { GemmTile<kRows, kVectors>(g, row, panel, column, slice, next); });
}

/// fn.template operator()<vectors>(panel, first column) for each panel.
template <class W, class X, class Fn>
HWY_INLINE void ForEachPanel(const PackedGemmOf<W, X>& g, Fn fn) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const W* panel = g.weight;
  std::int64_t column = 0;
  const auto next = [&]<int kVectors>(Constant<kVectors>) HWY_ATTR {
    fn.template operator()<kVectors>(panel, column);
    panel += kVectors * lanes * g.depth;
    column += kVectors * lanes;
  };
  while (g.columns - column > (kGemmVectors - 1) * lanes) next(Constant<kGemmVectors>());
  const std::int64_t left = g.columns - column;
  if (left <= 0) return;
  if (left <= lanes) return next(Constant<1>());
  if constexpr (kGemmVectors > 2) {
    if (left <= 2 * lanes) return next(Constant<2>());
    next(Constant<3>());
  }
}

/// Panels that are read side by side for a row or two: one stream is bound by the misses that its prefetcher keeps in
/// flight, at about half of the bandwidth of four. As many as the registers hold sums of.
constexpr int GemmStreams(int rows) { return rows == 1 ? 4 : 3; }

/// The first GemmStreams(kRows) panels, which are full. The sums are those of GemmTile, in its order.
template <int kRows, class W, class X>
HWY_INLINE void GemmSideBySide(const PackedGemmOf<W, X>& g) {
  constexpr int kStreams = GemmStreams(kRows);
  constexpr std::int64_t kWidth = kGemmVectors * hn::MaxLanes(TileTag());
  const W* HWY_RESTRICT panel = g.weight;
  const std::int64_t stream = kWidth * g.depth;
  HWY_ALIGN float sums[kStreams][kRows * kWidth];
  Tile<kRows, kGemmVectors> t0, t1, t2, t3;
  const auto for_each = [&](auto fn) TILE_LAMBDA {
    fn(0, t0), fn(1, t1), fn(2, t2);
    if constexpr (kStreams > 3) fn(3, t3);
  };
  std::int64_t k = 0;
  do {
    const std::int64_t end = std::min(k + kGemmDepthBlock, g.depth);
    const bool first = k == 0;
    for_each([](int, auto& tile) TILE_LAMBDA { tile.Clear(); });
    for (; k < end; ++k, panel += kWidth) {
      const auto x = [&](int r) TILE_LAMBDA { return widen(g.x[r * g.x_stride + k]); };
      for_each([&](int i, auto& tile) TILE_LAMBDA { GemmStep(tile, panel + i * stream, x); });
    }
    if (!first) for_each([&](int i, auto& tile) TILE_LAMBDA { AddSums(tile, sums[i]); });
    if (k < g.depth) for_each([&](int i, auto& tile) TILE_LAMBDA { KeepSums(tile, sums[i]); });
  } while (k < g.depth);
  for_each([&](int i, auto& tile) TILE_LAMBDA { FinishTile(tile, g, 0, i * kWidth); });
}

/// Multiplies the columns of a row or two that make full panels side by side, and returns what is left of the product.
template <int kRows, class W, class X>
HWY_INLINE PackedGemmOf<W, X> MultiplySideBySide(PackedGemmOf<W, X> g) {
  constexpr std::int64_t kColumns = GemmStreams(kRows) * kGemmVectors * hn::MaxLanes(TileTag());
  for (; g.columns >= kColumns; g.columns -= kColumns) {
    GemmSideBySide<kRows>(g);
    g.weight += kColumns * g.depth;
    g.bias = g.bias != nullptr ? g.bias + kColumns : nullptr;
    g.y += kColumns;
  }
  return g;
}

template <class W, class X>
inline PackedGemmOf<W, X> MultiplyFewRows(const PackedGemmOf<W, X>& g) {
  if (g.depth == 0) return g;
  if (g.rows == 1) return MultiplySideBySide<1>(g);
  if (g.rows == 2) return MultiplySideBySide<2>(g);
  return g;
}

inline void MultiplyPacked(const PackedGemm& whole) {
  const PackedGemm g = MultiplyFewRows(whole);
  GemmSlice slice{0, 0};
  do {
    slice = {slice.end, std::min(slice.end + kGemmSlice, g.depth)};
    ForEachPanel(g, [&]<int kVectors>(const float* panel, std::int64_t column)
                        HWY_ATTR { GemmPanel<kVectors>(g, panel, column, slice); });
  } while (slice.end < g.depth);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
