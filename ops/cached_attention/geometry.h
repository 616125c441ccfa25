// How the work of any call is cut, by spec and SIMD target alone: rows into query tiles, keys into blocks and spans.
// Its words are those of attention/tiled/task.h, and:
//
//   rows    of a sequence and key/value head: row r is token r / G in the group's head r % G, so that a tile's rows are
//           few neighbouring tokens whatever the group is
//   span    keys whose softmax runs from block to block; the states of spans are folded, pair by pair, in the order of
//           a binary tree over the absolute positions of spans. Batch-invariant: a constant; else a whole split.
//   split   keys of one task, from a multiple of split_keys on; a whole number of spans
#pragma once

#include <cstdint>

#include "headway/cached_attention.h"
#include "ops/simd/attention_tile.h"

namespace headway {

/// Rows of a sequence and key/value head on `vectors` vectors.
struct TileRows {
  std::int64_t begin;
  std::int64_t rows;
  int vectors;
};

struct CachedGeometry {
  static constexpr int kMaxTiles = 4;                // of a task
  static constexpr std::int64_t kEnoughTasks = 256;  // four for each of 64 workers
  static constexpr std::int64_t kMaxFewRows = 16;    // few_rows, at most
  static constexpr std::int64_t kKeyBlock = 128;     // as in tiled; a multiple of every usual cache block
  static constexpr std::int64_t kMinSplitKeys = kKeyBlock;
  static constexpr std::int64_t kInvariantSpanKeys = 256;  // a fold per so many keys costs about 1 % of their products
  static constexpr std::int64_t kDepthBlock = 256;         // a query panel stays in the first-level cache

  CachedGeometry(const CachedAttentionSpec& spec, const AttentionTileKernels& kernels);

  std::int64_t sharing;   // G
  int lanes;              // of a vector
  std::int64_t few_rows;  // that share each reading of a key; beyond them register tiles waste less than that costs
  int max_vectors;
  std::int64_t tile_lanes;  // of the widest tile
  int max_tiles;            // of a task, at most
  std::int64_t min_split_keys;
  std::int64_t span_keys;   // 0: the split's
  std::int64_t state_rows;  // of split sequences, at most
  int fold_levels;          // of the tree inside a task

  std::int64_t tiles(std::int64_t rows) const;
  TileRows tile(std::int64_t rows, std::int64_t index) const;
};

}  // namespace headway
