// How the tiled engine cuts its work, by shapes and SIMD target alone: rows of a head group into query tiles that fit
// the register tile, query tiles into tasks that share a pass over the keys, keys into blocks that fit the first-level
// cache. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headway/attention.h"
#include "ops/simd/attention_tile.h"

namespace headway {

/// Lanes of the widest query tile of any target.
inline constexpr int kMaxTileLanes = 64;

/// Rows [begin, begin + rows) of a head group on `vectors` vectors.
struct QueryTileRows {
  std::int64_t begin;
  std::int64_t rows;
  int vectors;
};

class TiledGeometry {
 public:
  static constexpr std::int64_t kMaxTilesPerTask = 4;

  /// `in_pairs`: bf16 that Bf16TileKernels multiply.
  TiledGeometry(const AttentionSpec& spec, const AttentionTileKernels& kernels, bool in_pairs);

  std::int64_t heads_per_group = 1;
  std::int64_t rows = 0;   // of a head group
  std::int64_t tiles = 0;  // of a head group
  std::int64_t tiles_per_task = 1;
  std::int64_t tasks = 0;  // of a head group
  std::int64_t key_block = 0;
  std::int64_t depth = 0;  // of the score tiles: D, or D / 2 pairs
  std::int64_t depth_block =
      0;  // depth of one call of the score kernel, so that a query panel stays in the first-level cache
  bool pack_value = false;  // in panels: widened rows would fall into a few sets of the first-level cache
  bool widen = false;       // key and value are bf16 and become f32 once per block
  bool pairs = false;       // bf16 is multiplied in pairs: see Bf16TileKernels
  float query_scale = 1;    // what queries are multiplied by when they are loaded,
  float score_scale = 1;    // and what is left of the scale for their scores
  bool prefetch = false;    // memory is larger than the second-level cache: prefetch it
  int lanes = 1;
  int tile_lanes = 1;  // of the widest query tile: max_vectors · lanes

  QueryTileRows tile(std::int64_t index) const;

  /// `worker_bytes`: of the workspace.
  std::string explain(const AttentionTileKernels& kernels, std::size_t worker_bytes) const;

 private:
  std::int64_t row_vectors_ = 0;
  int max_vectors_ = 3;
};

}  // namespace headway
