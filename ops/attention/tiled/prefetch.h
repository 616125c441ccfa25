// What a group will read or write soon, so that the tiles of its scores can ask for it in passing. Knows where it lies,
// not how it is asked for.
#pragma once

#include "ops/attention/tiled/block.h"

namespace headway {

inline constexpr int kMaxWanted = 4;

/// One call of the score kernel: keys [key, key + keys) of the block, columns from `column` on, in tiles of `vectors`.
struct ScoreCall {
  std::int64_t key;
  std::int64_t keys;
  std::int64_t column;
  int vectors;
  bool first;  // of its group
};

/// Fills wanted[kMaxWanted] and returns how many there are. A cold block: the keys of the next tile and the values of
/// this one. The first call of a group: the rows that its output goes to, and the queries that follow in memory.
int wanted_rows(const TiledTask& task, const GroupRows& rows, const KeyBlock& block, const ScoreCall& call,
                WantedRows* wanted);

}  // namespace headway
