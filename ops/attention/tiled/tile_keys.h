// The keys of a block that one query tile works on, and the user's masks for them. Decides what is left out because no
// row, or no row of a vector, sees it. Knows no scores.
#pragma once

#include <cstdint>

#include "ops/attention/tiled/query_tile.h"

namespace headway {

/// Keys [begin, end) of a block, of which those from `limited` on are not seen by all rows.
struct TileKeys {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t limited;
  std::int64_t vector_end[3];  // counted from begin: what the rows of a vector see ends there
};

TileKeys tile_keys_of(const QueryTile& tile, const KeyBlock& block);

/// The user's masks for the keys of a tile: one row when it serves all lanes, else a panel.
struct TileBias {
  const float* row = nullptr;    // [keys]
  const float* panel = nullptr;  // [keys, tile_lanes]
};
/// Shortens `keys` by those at its end that are hidden from all rows.
TileBias load_bias(const QueryTile& tile, TileKeys* keys);

/// Work on the keys of a tile, for the profile.
struct TileWork {
  std::int64_t pairs = 0;        // (row, key) pairs that the integer rules let through
  std::int64_t score_pairs = 0;  // pairs in the register tiles of the scores, padding included
  std::int64_t prob_pairs = 0;   // pairs that went through exp and the context
};
TileWork count_work(const QueryTile& tile, const TileKeys& keys, bool always_visible);

}  // namespace headway
