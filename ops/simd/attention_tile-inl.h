// The steps of attention on one tile after its scores (score_tile-inl.h), for one SIMD target: masks, softmax and
// context. Panels to and from memory are panel-inl.h; the register tile is tile-inl.h.
#if defined(HEADWAY_OPS_SIMD_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_ATTENTION_TILE_INL_H_
#undef HEADWAY_OPS_SIMD_ATTENTION_TILE_INL_H_
#else
#define HEADWAY_OPS_SIMD_ATTENTION_TILE_INL_H_
#endif

#include <limits>

#include "ops/simd/attention_tile.h"
#include "ops/simd/math-inl.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ------------------------------------------------------------------------------------------------------------ adjust

inline void Adjust(const AdjustTile& t) {
  const TileTag d;
  const hn::RebindToSigned<TileTag> di;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t tile_lanes = t.vectors * lanes;
  const auto hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto cap = hn::Set(d, t.softcap);
  for (int v = 0; v < t.vectors; ++v) {
    const std::int64_t lane = v * lanes;
    auto max = hn::Load(d, t.block_max + lane);
    auto bias_max = t.bias_max != nullptr ? hn::Load(d, t.bias_max + lane) : hidden;
    for (std::int64_t j = 0; j < t.vector_end[v]; ++j) {
      float* HWY_RESTRICT at = t.scores + j * tile_lanes + lane;
      auto x = hn::Load(d, at);
      auto bias = hn::Zero(d);
      if (t.softcap > 0) x = hn::Mul(cap, Tanh(d, hn::Div(x, cap)));
      if (t.key_bias != nullptr) bias = hn::Set(d, t.key_bias[j]);
      if (t.bias != nullptr) bias = hn::Add(bias, hn::Load(d, t.bias + j * tile_lanes + lane));
      if (t.first != nullptr) {
        const auto key = hn::Set(di, t.key_offset + static_cast<std::int32_t>(j));
        const auto before = hn::Lt(key, hn::LoadU(di, t.first + lane));
        const auto after = hn::Not(hn::Lt(key, hn::LoadU(di, t.end + lane)));
        bias = hn::IfThenElse(hn::RebindMask(d, hn::Or(before, after)), hidden, bias);
      }
      // Selected, not added: a hidden key's score may be NaN.
      x = hn::IfThenElse(hn::Eq(bias, hidden), hidden, hn::Add(x, bias));
      hn::Store(x, d, at);
      max = hn::Max(x, max);
      bias_max = hn::Max(bias, bias_max);
    }
    hn::Store(max, d, t.block_max + lane);
    if (t.bias_max != nullptr) hn::Store(bias_max, d, t.bias_max + lane);
  }
}

// ----------------------------------------------------------------------------------------------------------- softmax

template <int kFirst, int kVectors>
HWY_INLINE void ExpKeys(float* HWY_RESTRICT s, std::int64_t begin, std::int64_t end, const TileRow& max, TileRow& sum) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t tile_lanes = kVectors * lanes;
  for (std::int64_t j = begin; j < end; ++j) {
    float* HWY_RESTRICT at = s + j * tile_lanes;
    if constexpr (kFirst <= 0) {
      const auto p = Exp(d, hn::Sub(hn::Load(d, at), max.c0));
      hn::Store(p, d, at);
      sum.c0 = hn::Add(sum.c0, p);
    }
    if constexpr (kFirst <= 1 && kVectors > 1) {
      const auto p = Exp(d, hn::Sub(hn::Load(d, at + lanes), max.c1));
      hn::Store(p, d, at + lanes);
      sum.c1 = hn::Add(sum.c1, p);
    }
    if constexpr (kFirst <= 2 && kVectors > 2) {
      const auto p = Exp(d, hn::Sub(hn::Load(d, at + 2 * lanes), max.c2));
      hn::Store(p, d, at + 2 * lanes);
      sum.c2 = hn::Add(sum.c2, p);
    }
  }
}

template <int kVectors>
HWY_INLINE void SoftmaxVectors(const SoftmaxTile& t) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  TileRow max, sum;
  max.c0 = max.c1 = max.c2 = sum.c0 = sum.c1 = sum.c2 = hn::Zero(d);
  ForEachVectorOfRow<kVectors>(max, [&](int v, TileVector& m) TILE_LAMBDA {
    const std::int64_t lane = v * lanes;
    const auto old = hn::Load(d, t.maximum + lane);
    m = hn::Max(hn::Load(d, t.block_max + lane), old);
    hn::Store(m, d, t.maximum + lane);
    hn::Store(Exp(d, hn::Sub(old, m)), d, t.rescale + lane);
  });
  ExpKeys<0, kVectors>(t.scores, 0, t.vector_end[0], max, sum);
  if constexpr (kVectors > 1) ExpKeys<1, kVectors>(t.scores, t.vector_end[0], t.vector_end[1], max, sum);
  if constexpr (kVectors > 2) ExpKeys<2, kVectors>(t.scores, t.vector_end[1], t.vector_end[2], max, sum);
  ForEachVectorOfRow<kVectors>(sum, [&](int v, TileVector& s) TILE_LAMBDA {
    const std::int64_t lane = v * lanes;
    hn::Store(hn::MulAdd(hn::Load(d, t.sum + lane), hn::Load(d, t.rescale + lane), s), d, t.sum + lane);
  });
}

inline void Softmax(const SoftmaxTile& t) {
  switch (t.vectors) {
    case 1:
      return SoftmaxVectors<1>(t);
    case 2:
      return SoftmaxVectors<2>(t);
    default:
      return SoftmaxVectors<3>(t);
  }
}

// ----------------------------------------------------------------------------------------------------------- context

/// Keys [begin, end) into a tile of kRows value columns; vectors before kFirst see none of them.
template <int kFirst, class Product, int kRows, int kVectors>
HWY_INLINE void ContextKeys(Tile<kRows, kVectors>& tile, const float* HWY_RESTRICT value, std::int64_t key_stride,
                            const float* HWY_RESTRICT scores, std::int64_t tile_lanes, std::int64_t keys) {
  // Unrolled for whole tiles only: the narrow ones at the edge cost more to compile than they would gain.
  constexpr int kTogether = kRows == TileRows(kVectors) ? kStepsTogether : 1;
  std::int64_t j = 0;
  for (; j + kTogether <= keys; j += kTogether) {
#pragma GCC unroll 8
    for (int i = 0; i < kTogether; ++i, value += key_stride, scores += tile_lanes) {
      tile.template Step<kFirst, Product>(scores, [&](int r) TILE_LAMBDA { return value[r]; });
    }
  }
  for (; j < keys; ++j, value += key_stride, scores += tile_lanes) {
    tile.template Step<kFirst, Product>(scores, [&](int r) TILE_LAMBDA { return value[r]; });
  }
}

template <int kRows, int kVectors, class Product>
HWY_INLINE void ContextColumns(const ContextTile& t, std::int64_t column, const float* value, std::int64_t stride) {
  const TileTag d;
  const std::int64_t lanes = hn::Lanes(d);
  const std::int64_t tile_lanes = kVectors * lanes;
  float* HWY_RESTRICT context = t.context + column * tile_lanes;
  Tile<kRows, kVectors> tile;
  if (t.rescale == nullptr) {
    tile.Clear();
  } else {
    tile.ForEachRow([&](int r, TileRow& row) TILE_LAMBDA {
      ForEachVectorOfRow<kVectors>(row, [&](int v, TileVector& x) TILE_LAMBDA {
        x = hn::Mul(hn::Load(d, t.rescale + v * lanes), hn::Load(d, context + r * tile_lanes + v * lanes));
      });
    });
  }
  const std::int64_t* end = t.vector_end;
  ContextKeys<0, Product>(tile, value, stride, t.scores, tile_lanes, end[0]);
  if constexpr (kVectors > 1) {
    ContextKeys<1, Product>(tile, value + end[0] * stride, stride, t.scores + end[0] * tile_lanes, tile_lanes,
                            end[1] - end[0]);
  }
  if constexpr (kVectors > 2) {
    ContextKeys<2, Product>(tile, value + end[1] * stride, stride, t.scores + end[1] * tile_lanes, tile_lanes,
                            end[2] - end[1]);
  }
  tile.ForEachRow([&](int r, TileRow& row) TILE_LAMBDA {
    ForEachVectorOfRow<kVectors>(
        row, [&](int v, TileVector& x) TILE_LAMBDA { hn::Store(x, d, context + r * tile_lanes + v * lanes); });
  });
}

template <int kVectors, class Product>
HWY_INLINE void ContextVectors(const ContextTile& t) {
  constexpr int kRows = TileRows(kVectors);
  const bool packed = t.panel_columns != 0;
  const std::int64_t stride = packed ? t.panel_columns : t.key_stride;
  std::int64_t column = 0;
  const auto at = [&]() {
    return packed ? t.value + column / t.panel_columns * t.panel_stride + column % t.panel_columns : t.value + column;
  };
  for (; column + kRows <= t.columns; column += kRows)
    ContextColumns<kRows, kVectors, Product>(t, column, at(), stride);
  if constexpr (kRows > 4) {
    for (; column + 4 <= t.columns; column += 4) ContextColumns<4, kVectors, Product>(t, column, at(), stride);
  }
  for (; column + 2 <= t.columns; column += 2) ContextColumns<2, kVectors, Product>(t, column, at(), stride);
  for (; column < t.columns; ++column) ContextColumns<1, kVectors, Product>(t, column, at(), stride);
}

template <class Product>
inline void Context(const ContextTile& t) {
  switch (t.vectors) {
    case 1:
      return ContextVectors<1, Product>(t);
    case 2:
      return ContextVectors<2, Product>(t);
    default:
      return ContextVectors<3, Product>(t);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_ATTENTION_TILE_INL_H_
