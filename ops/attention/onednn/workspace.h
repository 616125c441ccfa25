// How `onednn_tiles` cuts the keys of a query block into products: few distinct widths, so that few matmuls are made.
// Knows no tensors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attention/visibility.h"

namespace headway {

/// Rows of a query block. 64 to 128 are the best that a product of this kind does; 64 wastes less on the diagonal.
inline constexpr std::int64_t kBlockRows = 64;
/// Keys of one product at most. Scores stay dense, [rows, columns] a product, because only dense operands get oneDNN's
/// blocked kernel.
inline constexpr std::int64_t kPieceKeys = 512;

/// Keys [key, key + keys), computed as `columns` ≥ keys columns that start at `column` of the block's rows.
struct KeyPiece {
  std::int64_t key, keys, columns, column;
};

/// What the width of a piece is a multiple of. bf16 products sum over pairs of keys, and with tiles over 32 at a time:
/// depths that are not a multiple of it have made oneDNN 2.6 execute an illegal instruction.
inline std::int64_t piece_granule(DataType type) { return type == DataType::kBF16 ? 32 : 16; }

/// Calls use(piece) for the keys that a block works on: `range`, then `tail`; as one where they touch. Widths are 512,
/// multiples of 64 below it, and at most one multiple of `granule` for what is left: eleven in all, whatever the
/// lengths.
template <class Use>
void each_piece(KeyRange range, KeyRange tail, std::int64_t granule, Use use) {
  std::int64_t column = 0;
  const auto cut = [&](KeyRange keys) {
    while (!keys.empty()) {
      const std::int64_t left = keys.end - keys.begin;
      const std::int64_t whole = std::min(left / 64 * 64, kPieceKeys);
      KeyPiece piece{keys.begin, whole, whole, column};
      if (whole == 0) piece = {keys.begin, left, (left + granule - 1) / granule * granule, column};
      use(piece);
      keys.begin += piece.keys;
      column += piece.columns;
    }
  };
  if (!range.empty() && range.end == tail.begin) {
    cut({range.begin, tail.end});
  } else {
    cut(range);
    cut(tail);
  }
}

/// Columns that each_piece() needs at most for `keys` keys: both ranges may be rounded up.
inline std::int64_t most_columns(std::int64_t keys, std::int64_t granule) {
  return (keys + granule - 1) / granule * granule + 2 * granule;
}

}  // namespace headway
