// The packed product for one SIMD target: panels outermost, so that one panel stays in the second-level cache while
// the rows of x pass by.
#if defined(HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#undef HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#else
#define HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
#endif

#include "hwy/cache_control.h"
#include "ops/simd/packed_gemm.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Products that are summed in registers before they join the rest of their sum.
inline constexpr std::int64_t kGemmDepthBlock = 128;

inline constexpr std::int64_t kLine = 16;  // floats of a cache line

/// The panel after this one, fetched ahead while the rows pass by: it comes from beyond the second-level cache, far
/// later than one that was read before. Worth 2 to 6 points of the peak when weights are cold (AVX-512, Intel).
struct NextPanel {
  const float* at;
  std::int64_t step;  // floats that one step asks for: less than a line, so that none is left out; 0: nothing
};

/// Rows [row, row + kRows) against one panel of kVectors vectors. `live` columns of the panel are written.
template <int kRows, int kVectors>
HWY_INLINE void GemmTile(const PackedGemm& g, std::int64_t row, const float* HWY_RESTRICT panel, std::int64_t column,
                         NextPanel& next) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  constexpr std::int64_t kLanes = hn::MaxLanes(TileTag());
  constexpr std::int64_t kWidth = kVectors * kLanes;
  // Rows beyond the last repeat it, reading and writing: a tail costs a whole tile and touches nothing else.
  const std::int64_t last = g.rows - 1 - row;
  const float* HWY_RESTRICT x[8];
  for (int r = 0; r < 8; ++r) x[r] = g.x + (row + std::min<std::int64_t>(r, last)) * g.x_stride;

  HWY_ALIGN float sums[8 * kTileVectors * kLanes];
  Tile<kRows, kVectors> tile;
  const float* ahead = next.at;
  std::int64_t k = 0;
  do {
    const std::int64_t end = std::min(k + kGemmDepthBlock, g.depth);
    const bool first = k == 0;
    tile.Clear();
    for (; k + kStepsTogether <= end; k += kStepsTogether) {
#pragma GCC unroll 8
      for (int i = 0; i < kStepsTogether; ++i) {
        const float* HWY_RESTRICT at = panel + i * kWidth;
        // A panel comes from the second-level cache; 16 steps ahead is worth 3 to 8 points of the peak (AVX-512,
        // Intel), if its lines are asked for step by step and not in one go.
        for (int v = 0; v < kVectors; ++v) {
          if ((i * kWidth + v * kLanes) % kLine == 0) hwy::Prefetch(at + 16 * kWidth + v * kLanes);
        }
        __builtin_prefetch(ahead, 0, 2);
        ahead += next.step;
        tile.template Step<0>(at, [&](int r) HWY_ATTR { return x[r][k + i]; });
      }
      panel += kStepsTogether * kWidth;
    }
    for (; k < end; ++k, panel += kWidth) {
      tile.template Step<0>(panel, [&](int r) HWY_ATTR { return x[r][k]; });
    }
    if (!first) {
      tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
        ForEachVectorOfRow<kVectors>(
            c, [&](int v, TileVector& s) HWY_ATTR { s = hn::Add(s, hn::Load(d, sums + r * kWidth + v * lanes)); });
      });
    }
    if (k == g.depth) break;
    tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
      ForEachVectorOfRow<kVectors>(
          c, [&](int v, TileVector& s) HWY_ATTR { hn::Store(s, d, sums + r * kWidth + v * lanes); });
    });
  } while (true);

  if (g.bias != nullptr) {
    TileRow bias;
    ForEachVectorOfRow<kVectors>(bias,
                                 [&](int v, TileVector& b) HWY_ATTR { b = hn::LoadU(d, g.bias + column + v * lanes); });
    tile.ForEachRow([&](int, TileRow& c) HWY_ATTR {
      c.c0 = hn::Add(c.c0, bias.c0);
      if constexpr (kVectors > 1) c.c1 = hn::Add(c.c1, bias.c1);
      if constexpr (kVectors > 2) c.c2 = hn::Add(c.c2, bias.c2);
    });
  }
  next.at = ahead;
  const std::int64_t live = g.columns - column;
  tile.ForEachRow([&](int r, TileRow& c) HWY_ATTR {
    float* HWY_RESTRICT y = g.y + (row + std::min<std::int64_t>(r, last)) * g.y_stride + column;
    ForEachVectorOfRow<kVectors>(c, [&](int v, TileVector& s) HWY_ATTR {
      const std::int64_t left = live - v * lanes;
      if (left >= lanes) {
        hn::StoreU(s, d, y + v * lanes);
      } else {
        HWY_ALIGN float rest[kLanes];
        hn::Store(s, d, rest);
        for (std::int64_t i = 0; i < left; ++i) y[v * lanes + i] = rest[i];
      }
    });
  });
}

template <int kVectors>
HWY_INLINE void GemmPanel(const PackedGemm& g, const float* panel, std::int64_t column) {
  constexpr int kRows = TileRows(kVectors);
  const std::int64_t width = kVectors * hn::Lanes(TileTag());
  // With few tiles a panel there is no time to fetch ahead in.
  const std::int64_t tiles = g.rows / kRows;
  NextPanel next{panel + width * g.depth, tiles < 4 ? 0 : width / tiles + 1};
  std::int64_t row = 0;
  for (; g.rows - row > 4; row += kRows) GemmTile<kRows, kVectors>(g, row, panel, column, next);
  if (g.rows - row > 2) {
    GemmTile<4, kVectors>(g, row, panel, column, next);
  } else if (g.rows - row > 0) {
    GemmTile<2, kVectors>(g, row, panel, column, next);
  }
}

inline void MultiplyPacked(const PackedGemm& g) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const float* panel = g.weight;
  for (std::int64_t column = 0; column < g.columns; column += kTileVectors * lanes) {
    const std::int64_t vectors = std::min<std::int64_t>((g.columns - column + lanes - 1) / lanes, kTileVectors);
    switch (vectors) {
      case 1:
        GemmPanel<1>(g, panel, column);
        break;
      case 2:
        GemmPanel<2>(g, panel, column);
        break;
      default:
        GemmPanel<3>(g, panel, column);
    }
    panel += vectors * lanes * g.depth;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_PACKED_GEMM_INL_H_
