// How `onednn_tiles` cuts the keys of a query tile into key blocks, one product each: few distinct widths, so that few
// matmuls are made. The words are those of tiled/task.h. Knows no tensors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attention/visibility.h"
#include "ops/base/layout.h"

namespace headway {

/// Rows of a query tile. 64 to 128 are the best that a product of this kind does; 64 wastes less on the diagonal.
inline constexpr std::int64_t kOnednnTileRows = 64;
/// Keys of one block at most. Scores stay dense, [rows, columns] per block, because only dense operands get oneDNN's
/// blocked kernel.
inline constexpr std::int64_t kOnednnBlockKeys = 512;
/// Blocks are as wide as this, a multiple of it, or less at the end.
inline constexpr std::int64_t kOnednnBlockStep = 64;

/// Keys [key, key + keys), computed as `columns` ≥ keys columns that start at `column` of the tile's rows.
struct OnednnKeyBlock {
  std::int64_t key, keys, columns, column;
};

/// What the width of a block is a multiple of. bf16 products sum over pairs of keys, and with AMX tiles over 32 at a
/// time: depths that are not a multiple of it have made oneDNN 2.6 execute an illegal instruction.
inline std::int64_t key_granule(DataType type) { return type == DataType::kBF16 ? 32 : 16; }

/// Calls use(block) for the keys that a query tile works on: `range`, then `always_visible`; as one range where they
/// touch. Widths are 512, multiples of 64 below it, and at most one multiple of `granule` for the rest: eleven in all,
/// whatever the lengths.
template <class Use>
void each_key_block(KeyRange range, KeyRange always_visible, std::int64_t granule, Use use) {
  std::int64_t column = 0;
  const auto cut = [&](KeyRange keys) {
    while (!keys.empty()) {
      const std::int64_t left = keys.end - keys.begin;
      const std::int64_t whole = std::min(left / kOnednnBlockStep * kOnednnBlockStep, kOnednnBlockKeys);
      OnednnKeyBlock block{keys.begin, whole, whole, column};
      if (whole == 0) block = {keys.begin, left, round_up(left, granule), column};
      use(block);
      keys.begin += block.keys;
      column += block.columns;
    }
  };
  if (!range.empty() && range.end == always_visible.begin) {
    cut({range.begin, always_visible.end});
  } else {
    cut(range);
    cut(always_visible);
  }
}

/// Columns that each_key_block() needs at most for `keys` keys: both ranges may be rounded up.
inline std::int64_t max_columns(std::int64_t keys, std::int64_t granule) {
  return round_up(keys, granule) + 2 * granule;
}

}  // namespace headway
