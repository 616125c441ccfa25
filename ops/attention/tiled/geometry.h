// How `tiled` cuts its work, by shapes and SIMD target alone: query rows into groups that fit the register tile, groups
// into chunks that share a pass over the keys, keys into blocks that fit the first cache. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headway/attention.h"
#include "ops/simd/attention_tile.h"

namespace headway {

/// Lanes of the widest group of any target.
inline constexpr int kMaxGroupLanes = 64;

/// Query rows [begin, begin + rows) on `vectors` vectors.
struct QueryGroup {
  std::int64_t begin;
  std::int64_t rows;
  int vectors;
};

/// Rows of a unit: the queries of one head, or of all G heads of a key/value head when there are so few queries that
/// one head would not fill a group. Row r is query r % Sq of the unit's head r / Sq.
class TiledGeometry {
 public:
  static constexpr std::int64_t kMaxGroupsPerChunk = 4;

  /// `in_pairs`: bf16 that Bf16TileKernels multiply.
  TiledGeometry(const AttentionSpec& spec, const AttentionTileKernels& kernels, bool in_pairs);

  std::int64_t heads_per_unit = 1;
  std::int64_t rows = 0;    // of a unit
  std::int64_t groups = 0;  // of a unit
  std::int64_t groups_per_chunk = 1;
  std::int64_t chunks = 0;  // of a unit
  std::int64_t key_block = 0;
  std::int64_t depth = 0;        // of the score tiles: D, or D / 2 pairs
  std::int64_t depth_block = 0;  // it is cut into such parts, so that a query panel stays in the first cache
  bool pack_value = false;       // in panels: widened rows would fall into a few sets of the first cache
  bool widen = false;            // key and value are bf16 and become f32 a block
  bool pairs = false;            // bf16 is multiplied in pairs: see Bf16TileKernels
  float query_scale = 1;         // what queries are multiplied by when they are loaded,
  float score_scale = 1;         // and what is left of the scale for their scores
  bool fetch = false;            // memory is asked for ahead
  int lanes = 1;
  int group_lanes = 1;  // of the widest group: max_vectors · lanes

  QueryGroup group(std::int64_t index) const;

  /// Floats of the per-worker buffers, each a multiple of 16.
  struct Buffers {
    std::int64_t queries, context, scores, state, key, value, bias_rows, bias, score_rows, tables;
    std::int64_t total() const {
      return queries + context + scores + state + key + value + bias_rows + bias + score_rows + tables;
    }
  };
  const Buffers& buffers() const { return buffers_; }
  std::string explain(const AttentionTileKernels& kernels) const;

 private:
  Buffers buffers_{};
  std::int64_t row_vectors_ = 0;
  int max_vectors_ = 3;
};

}  // namespace headway
