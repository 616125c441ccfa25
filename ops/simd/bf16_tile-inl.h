// The steps on pairs of bf16 that are not shared with f32: pairs of query columns, softmax that leaves pairs of
// probabilities, pairs of value rows. The layout is described at Bf16TileKernels.
#if defined(HEADWAY_OPS_SIMD_BF16_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_BF16_TILE_INL_H_
#undef HEADWAY_OPS_SIMD_BF16_TILE_INL_H_
#else
#define HEADWAY_OPS_SIMD_BF16_TILE_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/panel-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

#if HEADWAY_HAS_BF16_PRODUCT

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float PairOf(BFloat16 first, BFloat16 second) {
  const BFloat16 both[2] = {first, second};
  float pair;
  std::memcpy(&pair, both, sizeof(pair));
  return pair;
}

/// Both of a pair times a power of two. Scaling by a power of two is exact for normal numbers.
HWY_INLINE TileVector ScalePair(TileVector pair, TileVector power) {
  const TileTag d;
  const hn::RebindToUnsigned<TileTag> d32;
  const auto mask = hn::Set(d32, 0xFFFF0000u);
  const auto bits = hn::BitCast(d32, pair);
  const auto first = hn::Mul(power, hn::BitCast(d, hn::ShiftLeft<16>(bits)));
  const auto second = hn::Mul(power, hn::BitCast(d, hn::And(bits, mask)));
  return hn::BitCast(d, hn::Or(hn::ShiftRight<16>(hn::BitCast(d32, first)), hn::And(hn::BitCast(d32, second), mask)));
}

inline void LoadPairs(const LoadPanel& t) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t tile_lanes = t.vectors * lanes;
  LoadPanel pairs = t;
  pairs.columns /= 2;
  for (std::int64_t lane = 0; lane < tile_lanes; lane += lanes) {
    for (std::int64_t c = LoadLanes<float, false>(pairs, tile_lanes, lane); c < pairs.columns; ++c) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const auto* at = reinterpret_cast<const BFloat16*>(t.rows[lane + i]) + 2 * c * t.column_stride;
        t.panel[c * tile_lanes + lane + i] = PairOf(at[0], at[t.column_stride]);
      }
    }
  }
  const TileVector power = hn::Set(d, t.scale);
  for (std::int64_t i = 0; i < pairs.columns * tile_lanes; i += lanes) {
    hn::Store(ScalePair(hn::Load(d, t.panel + i), power), d, t.panel + i);
  }
}

/// The probabilities of two keys, neither negative, rounded to nearest. NaN stays NaN: arithmetic makes none whose
/// lower bits could carry into the sign.
HWY_INLINE TileVector RoundToPairs(TileVector first, TileVector second) {
  const TileTag d;
  const hn::RebindToUnsigned<TileTag> d32;
  const auto half = hn::Set(d32, 0x8000);
  const auto lower = hn::ShiftRight<16>(hn::Add(hn::BitCast(d32, first), half));
  const auto upper = hn::And(hn::Add(hn::BitCast(d32, second), half), hn::Set(d32, 0xFFFF0000u));
  return hn::BitCast(d, hn::Or(lower, upper));
}

/// One vector of queries: exps of the keys [0, keys), two per step; pair i overwrites the scores of key i.
HWY_INLINE TileVector ExpPairs(float* HWY_RESTRICT scores, std::int64_t tile_lanes, std::int64_t keys, TileVector max) {
  const TileTag d;
  TileVector sum = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + 2 <= keys; j += 2) {
    const auto p0 = ExpForBf16(d, hn::Sub(hn::Load(d, scores + j * tile_lanes), max));
    const auto p1 = ExpForBf16(d, hn::Sub(hn::Load(d, scores + (j + 1) * tile_lanes), max));
    sum = hn::Add(sum, hn::Add(p0, p1));
    hn::Store(RoundToPairs(p0, p1), d, scores + j / 2 * tile_lanes);
  }
  if (j < keys) {
    const auto p0 = ExpForBf16(d, hn::Sub(hn::Load(d, scores + j * tile_lanes), max));
    sum = hn::Add(sum, p0);
    hn::Store(RoundToPairs(p0, hn::Zero(d)), d, scores + j / 2 * tile_lanes);
  }
  return sum;
}

inline void SoftmaxPairs(const SoftmaxTile& t) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t tile_lanes = t.vectors * lanes;
  for (int v = 0; v < t.vectors; ++v) {
    const std::int64_t lane = v * lanes;
    const auto old = hn::Load(d, t.maximum + lane);
    const auto max = hn::Max(hn::Load(d, t.block_max + lane), old);
    const auto rescale = Exp(d, hn::Sub(old, max));
    const auto sum = ExpPairs(t.scores + lane, tile_lanes, t.vector_end[v], max);
    hn::Store(max, d, t.maximum + lane);
    hn::Store(rescale, d, t.rescale + lane);
    hn::Store(hn::MulAdd(hn::Load(d, t.sum + lane), rescale, sum), d, t.sum + lane);
  }
}

/// kValueColumns columns of two rows as pairs.
HWY_INLINE void PairColumns(const std::uint16_t* first, const std::uint16_t* second, float* HWY_RESTRICT to) {
  const hn::CappedTag<std::uint16_t, 8> d;
  static_assert(kValueColumns == 8, "two halves of a vector of eight");
  const auto a = hn::LoadU(d, first);
  const auto b = hn::LoadU(d, second);
  auto* const pairs = reinterpret_cast<std::uint16_t*>(to);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, pairs);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, pairs + 8);
}

inline void PairAllRows(const PairRows& t) {
  const std::int64_t panel = (t.rows + 1) / 2 * kValueColumns;
  float* to = t.to;
  for (std::int64_t i = 0; i < t.rows; i += 2, to += kValueColumns) {
    const BFloat16* const first = t.from + i * t.row_stride;
    const BFloat16* const second = first + t.row_stride;
    float* at = to;
    std::int64_t c = 0;
    if (t.column_stride == 1 && i + 1 < t.rows) {
      for (; c + kValueColumns <= t.columns; c += kValueColumns, at += panel) {
        PairColumns(reinterpret_cast<const std::uint16_t*>(first + c),
                    reinterpret_cast<const std::uint16_t*>(second + c), at);
      }
    }
    for (; c < t.columns; c += kValueColumns, at += panel) {
      for (std::int64_t k = 0; k < std::min<std::int64_t>(kValueColumns, t.columns - c); ++k) {
        const std::int64_t column = (c + k) * t.column_stride;
        at[k] = PairOf(first[column], i + 1 < t.rows ? second[column] : BFloat16{});
      }
    }
  }
}

#endif  // HEADWAY_HAS_BF16_PRODUCT

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_BF16_TILE_INL_H_
