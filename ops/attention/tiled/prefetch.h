// What a query tile will read or write soon, so that its score kernel can prefetch it in passing. Knows where that
// lies, not how it is prefetched.
#pragma once

#include "ops/attention/tiled/query_tile.h"

namespace headway {

inline constexpr int kMaxPrefetches = 4;

/// One call of the score kernel: keys [key, key + keys) of the block, depth from `column` on, for the last `vectors`
/// vectors of the query tile.
struct ScoreCall {
  std::int64_t key;
  std::int64_t keys;
  std::int64_t column;
  int vectors;
  bool first;  // of its query tile
};

/// Fills prefetches[kMaxPrefetches] and returns how many there are. A cold block: the keys of the next register tile
/// and the values of this one. The first call of a query tile: the rows of its output, and the queries after it in
/// memory.
int prefetch_rows(const QueryTile& tile, const KeyBlock& block, const ScoreCall& call, PrefetchRows* prefetches);

}  // namespace headway
