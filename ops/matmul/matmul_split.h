// How a projection is cut into tasks. Decides from the shape alone, so that the bits do not depend on the number of
// threads. Knows neither oneDNN nor the machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/base/layout.h"

namespace headway {

/// Rows and columns of one task; the last row block and the last column chunk may be smaller.
struct MatmulSplit {
  std::int64_t row_block = 1;
  std::int64_t column_block = 1;
};

/// Starts from blocks in which a single thread is at its best and makes them smaller only while there are too few
/// tasks. 512 rows × 256 columns: oneDNN's plain GEMM copies both operands, at about one cycle an element, which is
/// then 1/16 and 1/32 of the arithmetic on 16 lanes; its blocked kernel keeps 256 columns of packed
/// weights (1 MB at depth 1024) in the second-level cache. Rows are halved once: row blocks share the packed weights,
/// but below 256 rows the plain GEMM falls off a cliff on AVX2. Then columns, down to 64. Sixteen tasks occupy eight
/// threads fully; beyond that a small product is better served by larger blocks.
inline MatmulSplit split_matmul(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kEnoughTasks = 16;
  MatmulSplit split{512, 256};
  const auto tasks = [&] { return ceil_div(rows, split.row_block) * ceil_div(columns, split.column_block); };
  while (tasks() < kEnoughTasks && split.row_block > 256) split.row_block /= 2;
  while (tasks() < kEnoughTasks && split.column_block > 64) split.column_block /= 2;
  split.row_block = std::clamp<std::int64_t>(rows, 1, split.row_block);
  split.column_block = std::clamp<std::int64_t>(columns, 1, split.column_block);
  return split;
}

}  // namespace headway
