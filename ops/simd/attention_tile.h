// The steps of attention on one query tile: rows of queries on SIMD lanes, against a block of keys. Each step is a
// kernel of the target; the loop over blocks, the meaning of masks and the order of steps are the caller's.
//
// A query tile is `vectors` vectors of query rows, at most `max_vectors`; tile_lanes = vectors · lanes floats is the
// row stride of every panel below. Panels are 64-byte aligned:
//   queries  [D, tile_lanes]     scaled and transposed
//   scores   [keys, tile_lanes]  scores of a key against all queries of the tile, then their exps
//   context  [Dv, tile_lanes]    the running output, transposed
//   state    [tile_lanes] each: running maximum and sum
// Panels are f32; rows of memory are f32 or bf16, and each kernel that reads or writes them exists for both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"

namespace headway {

/// Rows of memory (query rows, mask rows) to a panel: panel[c][lane] = scale · rows[lane][c]. `rows` has one pointer
/// per lane; lanes beyond the last row repeat it.
struct LoadPanel {
  const std::byte* const* rows;  // [tile_lanes]
  std::int64_t column_stride;    // elements between rows[lane][c] and rows[lane][c + 1]
  std::int64_t columns;
  float scale;
  int vectors;
  float* panel;  // [columns, tile_lanes]
};

/// Rows of memory to prefetch, as they may not be in the second-level cache: `per_tile` of them with every register
/// tile of scores, a few lines with every few steps. All at once they would stall the tile.
struct PrefetchRows {
  const std::byte* first;
  std::int64_t stride;  // bytes between rows
  std::int64_t rows;
  std::int64_t bytes;  // per row
  std::int64_t per_tile;
};

/// scores[j] = k[j] · queries for j in [0, keys), for the vectors from first_vector on.
struct ScoreTile {
  const float* key;         // [keys, depth], innermost stride 1
  std::int64_t key_stride;  // floats between keys
  std::int64_t keys;
  std::int64_t depth;
  const float* queries;  // [depth, tile_lanes]
  int vectors;
  int first_vector;
  bool accumulate;                           // add to scores: a later range of a depth that is cut
  float* scores;                             // [keys rounded up to key_tile, tile_lanes]
  float* block_max;                          // [tile_lanes]: raised to the largest score; null: left alone
  const PrefetchRows* prefetches = nullptr;  // [prefetch_count]
  int prefetch_count = 0;
  float scale = 1;  // what the queries were not scaled by; other than 1 with pairs only, see Bf16TileKernels
};

/// Keys that the score kernel computes for `keys` in register tiles of `rows` rows: a rest costs a whole tile, except
/// that tiles of six rows end in tiles of four where those fit.
inline std::int64_t keys_in_tiles(std::int64_t keys, std::int64_t rows) {
  const bool in_fours = rows == 6 && (keys % 6 == 4 || (keys % 6 == 2 && keys >= 8));
  return in_fours ? keys : (keys + rows - 1) / rows * rows;
}

/// In place on scores: softcap, then biases, then limits; and the maximum of the result.
struct AdjustTile {
  std::int64_t vector_end[3];  // keys to adjust in vector 0, 1, 2
  int vectors;
  float softcap;              // 0: none
  const float* key_bias;      // [keys], the same for all queries, or null
  const float* bias;          // [keys, tile_lanes], or null
  const std::int32_t* first;  // [tile_lanes], or null: lane sees keys first ≤ key_offset + j < end
  const std::int32_t* end;    // [tile_lanes]
  std::int32_t key_offset;
  float* scores;     // [keys, tile_lanes]
  float* block_max;  // [tile_lanes]: raised to the largest result
  float* bias_max;   // [tile_lanes]: raised to the largest bias, limits included; or null
};

/// scores = exp(scores − maximum); updates the running state and gives the factor for what was summed before.
struct SoftmaxTile {
  std::int64_t vector_end[3];  // keys with exps in all vectors; from vector 1 on; from vector 2 on
  int vectors;
  float* scores;           // [keys, tile_lanes]
  const float* block_max;  // [tile_lanes]
  float* maximum;          // [tile_lanes]
  float* sum;              // [tile_lanes]
  float* rescale;          // [tile_lanes]: exp(old maximum − new)
};

/// context = rescale · context + value^T · scores.
struct ContextTile {
  const float* value;  // element (key, column) at key · key_stride + column
  std::int64_t key_stride;
  std::int64_t columns;        // Dv
  std::int64_t panel_columns;  // 0; or the value is packed as [Dv / panel_columns][keys][panel_columns]
  std::int64_t panel_stride;   // floats between such panels
  std::int64_t vector_end[3];  // as in SoftmaxTile
  int vectors;
  const float* scores;   // [keys, tile_lanes]
  const float* rescale;  // [tile_lanes]; null: context is overwritten
  float* context;        // [Dv, tile_lanes]
};

/// Panel to rows of memory: rows[lane][c] = factor[lane] · panel[c][lane]. Lanes may share a row. Returns whether all
/// of these products are finite.
struct StorePanel {
  const float* panel;  // [columns, tile_lanes]
  std::int64_t columns;
  int vectors;
  const float* factor;     // [tile_lanes] or null
  std::byte* const* rows;  // [tile_lanes]
  std::int64_t column_stride;
};

/// Rows of bf16 to f32, as a dense matrix or in column panels as ContextTile has them.
struct WidenRows {
  const BFloat16* from;     // [rows, columns], innermost stride 1
  std::int64_t row_stride;  // elements between rows
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t panel_columns;  // 0: to is [rows, columns]; else [⌈columns / panel_columns⌉, rows, panel_columns]
  float* to;
};

/// Rows of bf16, any strides, to pairs of neighbouring rows in panels of value_columns:
/// [⌈columns / value_columns⌉, ⌈rows / 2⌉, value_columns] pairs. The partner of a last odd row is 0.
struct PairRows {
  const BFloat16* from;
  std::int64_t row_stride;     // elements
  std::int64_t column_stride;  // elements
  std::int64_t rows;
  std::int64_t columns;
  float* to;
};

/// The steps on bf16 without widening, by products of pairs that are added up in f32. A pair takes the place of a
/// float, the first of the two in its lower half:
///   queries  [D / 2, tile_lanes]     neighbouring columns, scaled by a power of two; D is even
///   keys     [keys, D / 2]      rows of memory in place, strides in pairs
///   probs    [⌈keys / 2⌉, tile_lanes]  neighbouring keys, overwriting their scores; rounded to bf16, exps good
///   to 7.5e-5 values   panels, see PairRows
/// Scores, maxima, sums and the context are f32. Denormal products and inputs count as 0.
struct Bf16TileKernels {
  void (*load)(const LoadPanel&);       // columns are single bf16
  void (*score)(const ScoreTile&);      // depth in pairs
  void (*softmax)(const SoftmaxTile&);  // vector_end in keys
  void (*context)(const ContextTile&);  // vector_end and strides in pairs of keys
  void (*pair_rows)(const PairRows&);
};

/// Of the current target; all null where the target or the CPU has no such product.
Bf16TileKernels bf16_tile_kernels();

/// Kernels of one target, resolved once at plan time. All are pure functions of their argument.
struct AttentionTileKernels {
  const char* target;
  int lanes;
  int max_vectors;
  int tile_rows[3];   // rows of a register tile of 1, 2, 3 vectors
  int key_tile;       // a key block should be a multiple of it; panels of scores have room for 8 more keys
  int value_columns;  // panel_columns of a packed value
  void (*load)(const LoadPanel&);
  void (*load_bf16)(const LoadPanel&);
  void (*score)(const ScoreTile&);
  void (*adjust)(const AdjustTile&);
  void (*softmax)(const SoftmaxTile&);
  void (*context)(const ContextTile&);
  bool (*store)(const StorePanel&);
  bool (*store_bf16)(const StorePanel&);
  void (*widen)(const WidenRows&);
};

/// Of the current target (target.h).
AttentionTileKernels attention_tile_kernels();

}  // namespace headway
