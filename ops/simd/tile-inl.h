// The register tile: rows of scalars times columns of vectors, c[row][vector] += a[row][k]·b[k][vector]. The same tile
// serves scores, context and packed products. Decides how many accumulators a target holds; knows nothing of
// attention.
#if defined(HEADWAY_OPS_SIMD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWAY_OPS_SIMD_TILE_INL_H_
#undef HEADWAY_OPS_SIMD_TILE_INL_H_
#else
#define HEADWAY_OPS_SIMD_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

// For lambdas that work on a register tile: not inlined, they would put the tile on the stack.
#undef TILE_LAMBDA
#if HWY_COMPILER_MSVC
#define TILE_LAMBDA HWY_ATTR
#else
#define TILE_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using TileTag = hn::ScalableTag<float>;
using TileVector = hn::Vec<TileTag>;

/// Vectors of a tile, at most: 3 use 12 of 16 registers with 4 rows, 24 of 32 with 8 rows.
inline constexpr int kTileVectors = 3;

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr bool kHas32Registers = true;
#else
inline constexpr bool kHas32Registers = false;  // but 16
#endif

/// Rows of a tile that is `vectors` wide. With 32 registers 8 rows; with 16 registers as many as leave room for the
/// vectors of b and one broadcast: 4 × 3, 6 × 2, 8 × 1 (measured: 4 × 3 is the fastest of all on Zen 3).
constexpr int TileRows(int vectors) {
  if (kHas32Registers) return vectors > 0 ? 8 : 0;
  return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

/// Common multiples of the rows of all widths that are used often: what a block of keys should be a multiple of, and
/// how many columns a packed value panel has.
inline constexpr int kKeyTile = TileRows(3) == TileRows(2) ? TileRows(3) : 12;
inline constexpr int kValueColumns = TileRows(3) == TileRows(2) ? TileRows(3) : 24;

/// c += a·b, kept in c's own register: GCC otherwise swaps operands of the FMA and spills accumulators.
HWY_INLINE void Accumulate(TileVector a, TileVector b, TileVector& c) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3)
  auto sum = c.raw;  // a copy: an aggregate that an asm writes to is not split into registers
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a.raw), "v"(b.raw));
  c.raw = sum;
#else
  c = hn::MulAdd(a, b, c);
#endif
}

/// What a step multiplies: one f32 a lane.
struct F32Product {
  static HWY_INLINE void Add(TileVector a, TileVector b, TileVector& c) { Accumulate(a, b, c); }
};

// Pairs of bf16, where each lane holds two neighbours in the place of one f32: c += a[0]·b[0] + a[1]·b[1]. An
// instruction of AVX512_BF16, which is no target of Highway 1.0: the assembler knows it whatever the target, and
// callers must have checked the CPU.
#undef HEADWAY_HAS_BF16_PRODUCT
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define HEADWAY_HAS_BF16_PRODUCT 1
struct Bf16Product {
  static HWY_INLINE void Add(TileVector a, TileVector b, TileVector& c) {
    auto sum = c.raw;
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a.raw), "v"(b.raw));
    c.raw = sum;
  }
};
#else
#define HEADWAY_HAS_BF16_PRODUCT 0
#endif

/// One row of vectors: of accumulators, or of b. Named members, because arrays of vectors end up on the stack. Only the
/// packed GEMM has a fourth.
struct TileRow {
  TileVector c0, c1, c2, c3;
};

/// fn(vector index, vector) for the vectors [kFirst, kVectors) of a row, unrolled.
template <int kVectors, int kFirst = 0, class Fn>
HWY_INLINE void ForEachVectorOfRow(TileRow& row, Fn fn) {
  if constexpr (kFirst <= 0 && kVectors > 0) fn(0, row.c0);
  if constexpr (kFirst <= 1 && kVectors > 1) fn(1, row.c1);
  if constexpr (kFirst <= 2 && kVectors > 2) fn(2, row.c2);
  if constexpr (kFirst <= 3 && kVectors > 3) fn(3, row.c3);
}

template <int kFirst, int kVectors, class Product = F32Product>
HWY_INLINE void AccumulateRow(TileVector a, const TileRow& b, TileRow& row) {
  if constexpr (kFirst <= 0 && kVectors > 0) Product::Add(a, b.c0, row.c0);
  if constexpr (kFirst <= 1 && kVectors > 1) Product::Add(a, b.c1, row.c1);
  if constexpr (kFirst <= 2 && kVectors > 2) Product::Add(a, b.c2, row.c2);
  if constexpr (kFirst <= 3 && kVectors > 3) Product::Add(a, b.c3, row.c3);
}
template <int kFirst, int kVectors, class Product = F32Product>
HWY_INLINE void AccumulateRow(float a, const TileRow& b, TileRow& row) {
  AccumulateRow<kFirst, kVectors, Product>(hn::Set(TileTag(), a), b, row);
}

/// Steps unrolled between two checks of the loop counter: 2 to 5 points of the peak (AVX-512). Where the width of a row
/// is not a constant, pointers advance step by step; offsets from one pointer cost 3 points.
inline constexpr int kStepsTogether = HEADWAY_STEPS_TOGETHER;

/// An index that is known at compile time.
template <int kValue>
using Constant = std::integral_constant<int, kValue>;

/// All accumulators of a tile of kRows × kVectors.
template <int kRows, int kVectors>
struct Tile {
  TileRow r0, r1, r2, r3, r4, r5, r6, r7;

  HWY_INLINE void Clear() {
    ForEachRow([](int, TileRow& row) TILE_LAMBDA {
      ForEachVectorOfRow<kVectors>(row, [](int, TileVector& sum) TILE_LAMBDA { sum = hn::Zero(TileTag()); });
    });
  }

  /// fn(Constant<index>, row) for each row in use, unrolled.
  template <class Fn>
  HWY_INLINE void ForEachRow(Fn fn) {
    if constexpr (kRows > 0) fn(Constant<0>(), r0);
    if constexpr (kRows > 1) fn(Constant<1>(), r1);
    if constexpr (kRows > 2) fn(Constant<2>(), r2);
    if constexpr (kRows > 3) fn(Constant<3>(), r3);
    if constexpr (kRows > 4) fn(Constant<4>(), r4);
    if constexpr (kRows > 5) fn(Constant<5>(), r5);
    if constexpr (kRows > 6) fn(Constant<6>(), r6);
    if constexpr (kRows > 7) fn(Constant<7>(), r7);
  }

  /// One step k: `a(row)` is the scalar of each row, or a vector that repeats it, `b` the vectors. Vectors before
  /// kFirst are left alone.
  template <int kFirst, class Product = F32Product, class Scalar>
  HWY_INLINE void Step(const float* HWY_RESTRICT b, Scalar a) {
    const TileTag d;
    TileRow vectors;
    ForEachVectorOfRow<kVectors, kFirst>(
        vectors, [&](int v, TileVector& to) TILE_LAMBDA { to = hn::Load(d, b + v * hn::Lanes(d)); });
    ForEachRow([&](auto r, TileRow& row) TILE_LAMBDA { AccumulateRow<kFirst, kVectors, Product>(a(r), vectors, row); });
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#endif  // HEADWAY_OPS_SIMD_TILE_INL_H_
