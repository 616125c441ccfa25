// The packed GEMM with bf16 weights for one SIMD target, without bf16 products: what is bf16 is widened to f32 for the
// f32 register tile. x and y are X, bf16 or f32. With few rows, weights are widened in registers, so that half the
// bytes are read; with many, slices of depth are widened: of all rows once, and of each panel into the first-level
// cache, where all rows use it. The sums and their order are those of the f32 GEMM.
#if defined(HEADWAY_OPS_SIMD_PACKED_GEMM_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_PACKED_GEMM_BF16_INL_H_
#undef HEADWAY_OPS_SIMD_PACKED_GEMM_BF16_INL_H_
#else
#define HEADWAY_OPS_SIMD_PACKED_GEMM_BF16_INL_H_
#endif

#include "ops/simd/packed_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows up to which the weights are widened in registers: two tiles where 32 registers leave room for it. With 16
/// registers only the smallest tile does so without spilling.
inline constexpr std::int64_t kFewGemmRows = kHas32Registers ? 2 * kGemmRows : 2;

/// Steps [k, end) of rows [row, row + rows), kGemmDepthBlock apart. Rows beyond the last repeat it: a tail costs a
/// whole tile and no other memory is used.
template <class X>
HWY_INLINE void WidenRows(const PackedGemmOf<BFloat16, X>& g, std::int64_t row, std::int64_t rows, std::int64_t k,
                          std::int64_t end, float* to) {
  for (std::int64_t r = row; r < row + rows; ++r, to += kGemmDepthBlock) {
    Widen(g.x + std::min(r, g.rows - 1) * g.x_stride + k, to, end - k);
  }
}

/// Rows [row, row + kRows) against a panel that stays bf16.
template <int kRows, int kVectors, class X>
HWY_INLINE void GemmTileOfFew(const PackedGemmOf<BFloat16, X>& g, std::int64_t row, const BFloat16* HWY_RESTRICT panel,
                              std::int64_t column) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(TileTag());
  HWY_ALIGN float x[kRows * kGemmDepthBlock];
  HWY_ALIGN float sums[kRows * kWidth];
  Tile<kRows, kVectors> tile;
  NextPanel nothing{reinterpret_cast<const char*>(panel), 0};
  std::int64_t k = 0;
  do {
    const std::int64_t end = std::min(k + kGemmDepthBlock, g.depth);
    const bool first = k == 0;
    WidenRows(g, row, kRows, k, end, x);
    tile.Clear();
    const auto scalar = [&](int r, std::int64_t at) HWY_ATTR { return x[r * kGemmDepthBlock + at]; };
    GemmSteps(tile, scalar, 0, end - k, panel + k * kWidth, nothing);
    k = end;
    if (!first) AddSums(tile, sums);
    if (k == g.depth) break;
    KeepSums(tile, sums);
  } while (true);
  FinishTile(tile, g, row, column);
}

template <int kVectors, class X>
HWY_INLINE void GemmPanelOfFew(const PackedGemmOf<BFloat16, X>& g, const BFloat16* panel, std::int64_t column) {
  if constexpr (kFewGemmRows == 2) {
    GemmTileOfFew<2, kVectors>(g, 0, panel, column);
  } else {
    ForEachRowTile(
        g.rows, [&]<int kRows>(std::int64_t row) HWY_ATTR { GemmTileOfFew<kRows, kVectors>(g, row, panel, column); });
  }
}

template <class X>
void MultiplyFewBf16(const PackedGemmOf<BFloat16, X>& g) {
  ForEachPanel(g, [&]<int kVectors>(const BFloat16* panel, std::int64_t column)
                      HWY_ATTR { GemmPanelOfFew<kVectors>(g, panel, column); });
}

/// The widened operands of a slice of depth [k, end), and the sums of the slices before it.
struct WidenedSlice {
  std::int64_t k, end;
  const float* x;  // [rows rounded up to a tile, kGemmDepthBlock]; null: each tile widens its own
  float* weight;   // [end - k, panel width]
  float* sums;     // [rows rounded up to a tile, panel width]
};

template <int kVectors, class X>
HWY_INLINE void GemmPanelSlice(const PackedGemmOf<BFloat16, X>& g, const BFloat16* panel, std::int64_t column,
                               const WidenedSlice& slice) {
  const std::int64_t width = kVectors * hn::Lanes(TileTag());
  Widen(panel + slice.k * width, slice.weight, (slice.end - slice.k) * width);
  // The same slice of the next panel is prefetched while the rows are multiplied.
  const std::int64_t tiles = std::max<std::int64_t>(1, g.rows / kGemmRows);
  NextPanel next{reinterpret_cast<const char*>(panel + (g.depth + slice.k) * width),
                 static_cast<std::int64_t>(sizeof(BFloat16)) * (width / tiles + 1)};
  ForEachRowTile(g.rows, [&]<int kRows>(std::int64_t row) HWY_ATTR {
    HWY_ALIGN float own[kRows * kGemmDepthBlock];
    if (slice.x == nullptr) WidenRows(g, row, kRows, slice.k, slice.end, own);
    const float* HWY_RESTRICT x = slice.x != nullptr ? slice.x + row * kGemmDepthBlock : own;
    const auto scalar = [&](int r, std::int64_t at) HWY_ATTR { return x[r * kGemmDepthBlock + at]; };
    Tile<kRows, kVectors> tile;
    tile.Clear();
    GemmSteps(tile, scalar, 0, slice.end - slice.k, static_cast<const float*>(slice.weight), next);
    float* const sums = slice.sums + row * width;
    if (slice.k > 0) AddSums(tile, sums);
    if (slice.end == g.depth) {
      FinishTile(tile, g, row, column);
    } else {
      KeepSums(tile, sums);
    }
  });
}

/// Slices of depth outermost; the sums of all rows and panels are kept between them.
template <class X>
void MultiplyManyBf16(const PackedGemmOf<BFloat16, X>& g) {
  const std::int64_t padded_rows = round_up(g.rows, kGemmRows);
  const std::int64_t panel_columns = kGemmVectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  float* const weight = g.scratch;
  float* const x = weight + kGemmDepthBlock * panel_columns;
  float* const sums = x + padded_rows * kGemmDepthBlock;
  // Rows that one or two wide panels read are better widened tile by tile, where they never leave the first-level cache
  // (AVX-512: 83 % of the f32 product's speed instead of 77); narrow panels of 16 registers have too little to do for
  // that (AVX2: 78 instead of 84).
  const bool shared = !kHas32Registers || g.columns > 2 * panel_columns;
  std::int64_t k = 0;
  do {
    const std::int64_t end = std::min(k + kGemmDepthBlock, g.depth);
    if (shared) WidenRows(g, 0, padded_rows, k, end, x);
    ForEachPanel(g, [&]<int kVectors>(const BFloat16* panel, std::int64_t column) HWY_ATTR {
      const WidenedSlice slice{k, end, shared ? x : nullptr, weight, sums + column * padded_rows};
      GemmPanelSlice<kVectors>(g, panel, column, slice);
    });
    k = end;
  } while (k < g.depth);
}

template <class X>
void MultiplyPackedBf16(const PackedGemmOf<BFloat16, X>& whole) {
  const PackedGemmOf<BFloat16, X> g = MultiplyFewRows(whole);
  if (g.rows <= kFewGemmRows) return MultiplyFewBf16(g);
  MultiplyManyBf16(g);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_PACKED_GEMM_BF16_INL_H_
