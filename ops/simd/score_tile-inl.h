// Scores of a query tile against a block of keys, for one SIMD target. Decides how rows of keys are addressed and when
// prefetches are issued; the register tile is tile-inl.h.
#if defined(HEADWAY_OPS_SIMD_SCORE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_SCORE_TILE_INL_H_
#undef HEADWAY_OPS_SIMD_SCORE_TILE_INL_H_
#else
#define HEADWAY_OPS_SIMD_SCORE_TILE_INL_H_
#endif

#include <limits>
#include <type_traits>
#include <utility>

#include "hwy/cache_control.h"
#include "ops/base/layout.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Prefetches the share of column c: the cache line of c in half of the rows of a register tile; the other half follows
/// with the next steps.
template <int kRows>
HWY_INLINE void PrefetchShare(const ScoreTile& t, std::int64_t key, std::int64_t c) {
  const std::int64_t line = c / kCacheLineFloats * kCacheLineFloats * static_cast<std::int64_t>(sizeof(float));
  const bool second = c % kCacheLineFloats != 0;
  for (int i = 0; i < t.prefetch_count; ++i) {
    const PrefetchRows& w = t.prefetches[i];
    if (line >= w.bytes) continue;
    const std::int64_t half = (w.per_tile + 1) / 2;
    const std::int64_t begin = key / kRows * w.per_tile + (second ? half : 0);
    const std::int64_t end = std::min(begin + (second ? w.per_tile - half : half), w.rows);
    for (std::int64_t r = begin; r < end; ++r) hwy::Prefetch(w.first + r * w.stride + line);
  }
}

/// Rows of keys, three per base pointer: one address of base and stride reaches all three, so that a tile of eight rows
/// takes four registers and not eight.
struct KeyRows {
  const float* base[3];
  std::int64_t stride;

  /// base[kRow / 3][kRow % 3 · stride + kColumn] in all lanes. The address is written in assembly: otherwise GCC keeps
  /// a register or a stack slot for every sum of stride and column, which costs a tenth of the tile's speed (AVX2).
  template <int kRow, int kColumn>
  HWY_INLINE TileVector Broadcast() const {
    const float* const at = base[kRow / 3];
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86_64 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3)
    TileVector all;
    auto raw = all.raw;
    const auto& row = *reinterpret_cast<const float(*)[]>(at);  // what the asm reads
    if constexpr (kRow % 3 == 0) {
      asm("vbroadcastss %c2(%1), %0" : "=v"(raw) : "r"(at), "i"(4 * kColumn), "m"(row));
    } else if constexpr (kRow % 3 == 1) {
      asm("vbroadcastss %c3(%1, %2, 4), %0" : "=v"(raw) : "r"(at), "r"(stride), "i"(4 * kColumn), "m"(row));
    } else {
      asm("vbroadcastss %c3(%1, %2, 8), %0" : "=v"(raw) : "r"(at), "r"(stride), "i"(4 * kColumn), "m"(row));
    }
    all.raw = raw;
    return all;
#else
    return hn::Set(TileTag(), at[kRow % 3 * stride + kColumn]);
#endif
  }
  HWY_INLINE void Advance(std::int64_t columns) {
    for (const float*& b : base) b += columns;
  }
};

/// Steps [0, kSteps) from q and k on.
template <int kQueryVectors, class Product, int kRows, int kVectors, int... kStep>
HWY_INLINE void ScoreSteps(Tile<kRows, kVectors>& tile, const float* HWY_RESTRICT q, const KeyRows& k,
                           std::integer_sequence<int, kStep...>) {
  const std::int64_t tile_lanes = kQueryVectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
  (tile.template Step<0, Product>(
       q + kStep * tile_lanes, [&](auto r) TILE_LAMBDA { return k.template Broadcast<decltype(r)::value, kStep>(); }),
   ...);
}

/// Stores the tile to the scores, or adds it to them where a depth is cut, and its maximum to block_max unless null.
template <int kQueryVectors, class Product, int kRows, int kVectors>
HWY_INLINE void StoreScores(const ScoreTile& t, std::int64_t key, std::int64_t lane, Tile<kRows, kVectors>& tile) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  float* HWY_RESTRICT s = t.scores + key * kQueryVectors * lanes + lane;
  if constexpr (!std::is_same_v<Product, F32Product>) {
    const TileVector scale = hn::Set(d, t.scale);
    tile.ForEachRow([&](int, TileRow& row) TILE_LAMBDA {
      ForEachVectorOfRow<kVectors>(row, [&](int, TileVector& x) TILE_LAMBDA { x = hn::Mul(scale, x); });
    });
  }
  if (t.accumulate) {
    tile.ForEachRow([&](int r, TileRow& row) TILE_LAMBDA {
      ForEachVectorOfRow<kVectors>(row, [&](int v, TileVector& x) TILE_LAMBDA {
        x = hn::Add(x, hn::Load(d, s + (r * kQueryVectors + v) * lanes));
      });
    });
  }
  TileRow max;
  max.c0 = max.c1 = max.c2 = hn::Set(d, std::numeric_limits<float>::lowest());
  tile.ForEachRow([&](int r, TileRow& row) TILE_LAMBDA {
    ForEachVectorOfRow<kVectors>(
        row, [&](int v, TileVector& x) TILE_LAMBDA { hn::Store(x, d, s + (r * kQueryVectors + v) * lanes); });
    max.c0 = hn::Max(row.c0, max.c0);
    if constexpr (kVectors > 1) max.c1 = hn::Max(row.c1, max.c1);
    if constexpr (kVectors > 2) max.c2 = hn::Max(row.c2, max.c2);
  });
  if (t.block_max == nullptr) return;
  float* HWY_RESTRICT block_max = t.block_max + lane;
  ForEachVectorOfRow<kVectors>(max, [&](int v, TileVector& x) TILE_LAMBDA {
    hn::Store(hn::Max(x, hn::Load(d, block_max + v * lanes)), d, block_max + v * lanes);
  });
}

/// One register tile of scores: kRows keys from `key` on, the last kVectors of the query tile's kQueryVectors.
template <int kQueryVectors, int kRows, int kVectors, class Product, bool kPrefetch>
HWY_INLINE void ScoreKeys(const ScoreTile& t, std::int64_t key) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t tile_lanes = kQueryVectors * lanes;
  const std::int64_t lane = (kQueryVectors - kVectors) * lanes;
  const float* const first = t.key + key * t.key_stride;
  KeyRows k{{first, kRows > 3 ? first + 3 * t.key_stride : first, kRows > 6 ? first + 6 * t.key_stride : first},
            t.key_stride};
  Tile<kRows, kVectors> tile;
  tile.Clear();
  const float* HWY_RESTRICT q = t.queries + lane;
  std::int64_t c = 0;
  for (; c + kStepsTogether <= t.depth; c += kStepsTogether, q += kStepsTogether * tile_lanes) {
    if constexpr (kPrefetch) PrefetchShare<kRows>(t, key, c);
    ScoreSteps<kQueryVectors, Product>(tile, q, k, std::make_integer_sequence<int, kStepsTogether>());
    k.Advance(kStepsTogether);
  }
  for (; c < t.depth; ++c, q += tile_lanes) {
    ScoreSteps<kQueryVectors, Product>(tile, q, k, std::make_integer_sequence<int, 1>());
    k.Advance(1);
  }
  StoreScores<kQueryVectors, Product>(t, key, lane, tile);
}

/// The same for fewer than kRows keys: rows beyond the last repeat it, so that a tail costs one whole tile and reads no
/// other memory.
template <int kQueryVectors, int kRows, int kVectors, class Product>
HWY_INLINE void ScoreLastKeys(const ScoreTile& t, std::int64_t key) {
  const std::int64_t lanes = hn::Lanes(TileTag());
  const std::int64_t tile_lanes = kQueryVectors * lanes;
  const std::int64_t lane = (kQueryVectors - kVectors) * lanes;
  const float* HWY_RESTRICT k[kRows];
  for (std::int64_t r = 0; r < kRows; ++r) k[r] = t.key + std::min(key + r, t.keys - 1) * t.key_stride;
  Tile<kRows, kVectors> tile;
  tile.Clear();
  const float* HWY_RESTRICT q = t.queries + lane;
  for (std::int64_t c = 0; c < t.depth; ++c, q += tile_lanes) {
    tile.template Step<0, Product>(q, [&](int r) TILE_LAMBDA { return k[r][c]; });
  }
  StoreScores<kQueryVectors, Product>(t, key, lane, tile);
}

template <int kQueryVectors, int kVectors, class Product>
HWY_INLINE void ScoreVectors(const ScoreTile& t) {
  if constexpr (kVectors > 0) {
    constexpr int kRows = TileRows(kVectors);
    std::int64_t key = 0;
    if constexpr (kVectors == kTileVectors && HWY_TARGET <= HWY_AVX3) {
      for (; t.prefetch_count > 0 && key + kRows <= t.keys; key += kRows)
        ScoreKeys<kQueryVectors, kRows, kVectors, Product, true>(t, key);
    }
    // Tiles of six rows end in tiles of four where those fit: on the diagonal two vectors often have 8 keys left. See
    // keys_in_tiles.
    constexpr bool kSix = kRows == 6;
    const auto in_fours = [&] { return kSix && (t.keys - key == 8 || t.keys - key == 4); };
    for (; key + kRows <= t.keys && !in_fours(); key += kRows) {
      ScoreKeys<kQueryVectors, kRows, kVectors, Product, false>(t, key);
    }
    if constexpr (kSix) {
      for (; in_fours(); key += 4) ScoreKeys<kQueryVectors, 4, kVectors, Product, false>(t, key);
    }
    if (key < t.keys) ScoreLastKeys<kQueryVectors, kRows, kVectors, Product>(t, key);
  }
}

template <int kQueryVectors, class Product>
HWY_INLINE void ScoreTileOf(const ScoreTile& t) {
  switch (t.first_vector) {
    case 0:
      return ScoreVectors<kQueryVectors, kQueryVectors, Product>(t);
    case 1:
      return ScoreVectors<kQueryVectors, kQueryVectors - 1, Product>(t);
    default:
      return ScoreVectors<kQueryVectors, kQueryVectors - 2, Product>(t);
  }
}

template <class Product>
inline void Score(const ScoreTile& t) {
  switch (t.vectors) {
    case 1:
      return ScoreTileOf<1, Product>(t);
    case 2:
      return ScoreTileOf<2, Product>(t);
    default:
      return ScoreTileOf<3, Product>(t);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_SCORE_TILE_INL_H_
