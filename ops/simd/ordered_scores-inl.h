// Scores of few_in_order.h for one SIMD target: keys are transposed in registers, four columns of a vector of keys at a
// time, and multiplied there. A panel in memory would cost a store and a load of every key (measured: half of the time
// that decoding takes from the second-level cache).
#if defined(HEADWAY_OPS_SIMD_ORDERED_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_ORDERED_SCORES_INL_H_
#undef HEADWAY_OPS_SIMD_ORDERED_SCORES_INL_H_
#else
#define HEADWAY_OPS_SIMD_ORDERED_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "ops/simd/f16-inl.h"
#include "ops/simd/few_in_order.h"
#include "ops/simd/few_queries-inl.h"
#include "ops/simd/panel-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of keys that are multiplied together: two hide the latency of the products where the registers hold them.
template <int kRows>
inline constexpr int kGroupVectors = kRows <= 4 ? 2 : 1;

template <int kVectors>
HWY_INLINE std::int64_t GroupKeys() {
  return kVectors * static_cast<std::int64_t>(hn::Lanes(TileTag()));
}

/// One column of the keys of a vector.
template <class Real>
HWY_INLINE TileVector KeyColumn(const Real* const* keys, std::int64_t c) {
  const TileTag d;
  HWY_ALIGN float x[hn::MaxLanes(TileTag())];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) x[i] = widen(keys[i][c]);
  return hn::Load(d, x);
}

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE TileVector LoadBlocks(const Float16* const* rows, std::int64_t column) {
#if HEADWAY_HAS_F16_CONVERSION
  const auto bits = LoadFours(Bf16Tag<TileTag>(),
                              [&](int i) HWY_ATTR { return reinterpret_cast<const std::uint16_t*>(rows[i] + column); });
  return hn::PromoteTo(TileTag(), hn::BitCast(hn::Rebind<hwy::float16_t, TileTag>(), bits));
#else
  HWY_ALIGN float x[hn::MaxLanes(TileTag())];
  for (std::size_t i = 0; i < hn::MaxLanes(TileTag()); ++i) x[i] = widen(rows[i / 4][column + i % 4]);
  return hn::Load(TileTag(), x);
#endif
}

/// Four columns from c on of the keys of a vector, one in each of s0 … s3.
template <class Real>
HWY_INLINE FourVectors FourKeyColumns(const Real* const* keys, std::int64_t c) {
  // Block b of the r-th load holds key 4·b + r, so that after the transpose of blocks keys are in order.
  constexpr int kBlocks = static_cast<int>(hn::MaxLanes(TileTag())) / 4;
  const auto load = [&](int r) HWY_ATTR {
    const RowBits<Real>* rows[kBlocks];
    for (int b = 0; b < kBlocks; ++b) rows[b] = reinterpret_cast<const RowBits<Real>*>(keys[4 * b + r]);
    return LoadBlocks(rows, c);
  };
  FourVectors x = {load(0), load(1), load(2), load(3)};
  Transpose4(TileTag(), x.s0, x.s1, x.s2, x.s3);
  return x;
}

#endif  // HWY_TARGET != HWY_SCALAR

/// Prefetches the rows after a group in shares, row by row: the prefetcher of the second-level cache follows rows, and
/// runs ahead of what the line fill buffers of the first could hold.
template <class Real>
class RowsAhead {
 public:
  RowsAhead(const OrderedScores<Real>& t, std::int64_t first)
      : row_(t.keys + first), bytes_(t.depth * static_cast<std::int64_t>(sizeof(Real))) {
    left_ = std::max<std::int64_t>(t.count + t.ahead - first, 0);
  }

  /// As many lines as `columns` columns of `keys` keys have, or a few more.
  HWY_INLINE void PrefetchShare(std::int64_t keys, std::int64_t columns) {
    constexpr std::int64_t kLines = 4;
    for (std::int64_t i = keys * columns / kLineElements<Real>; i > 0 && left_ > 0; i -= kLines) {
      const std::byte* const at = *row_ + byte_;
      hwy::Prefetch(at);
      hwy::Prefetch(at + 64);
      hwy::Prefetch(at + 2 * 64);
      hwy::Prefetch(at + 3 * 64);
      byte_ += kLines * 64;
      if (byte_ >= bytes_) byte_ = 0, ++row_, --left_;
    }
  }

 private:
  const std::byte* const* row_;
  std::int64_t bytes_, left_, byte_ = 0;
};

/// fn(Constant<index>) for the vectors of a group, unrolled.
template <int kVectors, class Fn>
HWY_INLINE void ForEachGroupVector(Fn fn) {
  fn(Constant<0>());
  if constexpr (kVectors > 1) fn(Constant<1>());
}

template <int kVector>
HWY_INLINE TileVector& VectorOf(TileRow& row) {
  if constexpr (kVector == 0) {
    return row.c0;
  } else {
    return row.c1;
  }
}

/// Rows [row, row + kRows) against the group of keys from `first` on. Rows and keys that are not there repeat the last;
/// such rows are not stored.
template <int kRows, class Real>
HWY_INLINE void ScoreGroup(const OrderedScores<Real>& t, std::int64_t first, std::int64_t row) {
  constexpr int kVectors = kGroupVectors<kRows>;
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d), group = GroupKeys<kVectors>();
  const float* query[kRows];
  for (int r = 0; r < kRows; ++r) query[r] = t.queries + std::min(row + r, t.rows - 1) * t.depth;
  const Real* keys[kVectors * hn::MaxLanes(TileTag())];
  for (std::int64_t i = 0; i < group; ++i) {
    keys[i] = reinterpret_cast<const Real*>(t.keys[std::min(first + i, t.count - 1)]);
  }
  RowsAhead<Real> ahead(t, first + group);
  for (std::int64_t begin = 0; begin < t.depth; begin += t.depth_block) {
    const std::int64_t end = std::min(begin + t.depth_block, t.depth);
    Tile<kRows, kVectors> tile;
    tile.Clear();
    [[maybe_unused]] const auto add = [&](auto v, const FourVectors& x, std::int64_t column) TILE_LAMBDA {
      tile.ForEachRow([&](int r, TileRow& sums) TILE_LAMBDA {
        TileVector& sum = VectorOf<decltype(v)::value>(sums);
        Accumulate(hn::Set(d, query[r][column]), x.s0, sum);
        Accumulate(hn::Set(d, query[r][column + 1]), x.s1, sum);
        Accumulate(hn::Set(d, query[r][column + 2]), x.s2, sum);
        Accumulate(hn::Set(d, query[r][column + 3]), x.s3, sum);
      });
    };
    std::int64_t c = begin;
#if HWY_TARGET != HWY_SCALAR
    for (; c + 4 <= end; c += 4) {
      if (kPrefetchRows) ahead.PrefetchShare(group, 4);
      ForEachGroupVector<kVectors>([&](auto v) TILE_LAMBDA { add(v, FourKeyColumns(keys + v * lanes, c), c); });
    }
#endif
    for (; c < end; ++c) {
      ForEachGroupVector<kVectors>([&](auto v) TILE_LAMBDA {
        const TileVector x = KeyColumn(keys + v * lanes, c);
        tile.ForEachRow([&](int r, TileRow& sums) TILE_LAMBDA {
          Accumulate(hn::Set(d, query[r][c]), x, VectorOf<decltype(v)::value>(sums));
        });
      });
    }
    tile.ForEachRow([&](int r, TileRow& sums) TILE_LAMBDA {
      if (row + r >= t.rows) return;
      ForEachVectorOfRow<kVectors>(sums, [&](int v, TileVector& x) TILE_LAMBDA {
        float* const at = t.scores + (row + r) * t.row_stride + first + v * lanes;
        hn::StoreU(begin > 0 ? hn::Add(x, hn::LoadU(d, at)) : x, d, at);
      });
    });
  }
}

template <int kRows, class Real>
inline void ScoreGroups(const OrderedScores<Real>& t, std::int64_t row) {
  const std::int64_t group = GroupKeys<kGroupVectors<kRows>>();
  for (std::int64_t first = 0; first < t.count; first += group) ScoreGroup<kRows>(t, first, row);
}

template <class Real>
inline void ScoreInOrder(const OrderedScores<Real>& t) {
  std::int64_t row = 0;
  for (; t.rows - row > 4; row += 8) ScoreGroups<8>(t, row);
  if (t.rows - row > 2) return ScoreGroups<4>(t, row);
  if (t.rows - row == 2) return ScoreGroups<2>(t, row);
  if (t.rows - row == 1) ScoreGroups<1>(t, row);
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_ORDERED_SCORES_INL_H_
