// What the tiled engine's files share, and the engine's words. They and the two other engines use these and no others:
//
//   head group     the query heads that are computed together: one head, or all G heads of a key/value head when there
//                  are so few queries that one head would not fill a query tile. Its rows are numbered through: row r
//                  is query r % Sq of the group's head r / Sq.
//   query tile     rows of a head group on neighbouring SIMD lanes, up to three vectors of them; the panels of a
//                  query tile are [.., tile_lanes].
//   key block      consecutive keys with their values, few enough for the first-level cache, that all query tiles of a
//                  task use before the next block comes.
//   task           what one worker computes without a break: up to four query tiles of one head group against all key
//                  blocks that they see. Tasks are the unit of parallelism.
//   register tile  accumulators of a kernel in ops/simd: rows (keys or value columns) × vectors of a query tile.
#pragma once

#include <cstdint>

#include "headway/attention.h"
#include "ops/attention/bias.h"
#include "ops/attention/phase_clock.h"
#include "ops/attention/tiled/geometry.h"
#include "ops/simd/attention_tile.h"

namespace headway {

/// Query index and head of a row of a head group.
struct QueryRow {
  std::int64_t head;
  std::int64_t query;
};

struct HeadGroup {
  std::int64_t batch;
  std::int64_t first_head;

  QueryRow row(std::int64_t index, std::int64_t query_len) const {
    return {first_head + index / query_len, index % query_len};
  }
};

/// Scratch of a worker that is used anew for each key block.
struct BlockScratch {
  float* scores;     // [key_block + 8, tile_lanes]
  float* block_max;  // [tile_lanes]
  float* rescale;    // [tile_lanes]
  float* bias_rows;  // [tile_lanes, key_block]
  float* bias;       // [key_block, tile_lanes]
  float* key;        // a packed block of keys
  float* value;      // a packed block of values
};

/// What the query tiles and key blocks of a task have in common.
struct TiledTask {
  const AttentionSpec& spec;
  const AttentionTileKernels& kernels;
  void (*pair_rows)(const PairRows&);  // of values, with geometry.pairs
  const TiledGeometry& geometry;
  const BiasSource& bias;
  const AttentionArgs& args;
  HeadGroup heads;
  BlockScratch scratch;
  PhaseClock& clock;
};

}  // namespace headway
