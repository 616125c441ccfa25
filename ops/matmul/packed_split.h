// How a packed product is cut into tasks. Decides from the shape and the SIMD target alone, so that the bits do not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/base/layout.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/packed_gemm.h"

namespace headway {

/// Tasks of row blocks × columns. Row blocks are equal but for a tile of rows. Columns are innermost: consecutive tasks
/// share their rows of x, which stay in the second-level cache, while panels are prefetched anyway.
struct PackedSplit {
  std::int64_t row_block, column_block, column_blocks, tasks;

  /// The widest task of any number of rows.
  static constexpr std::int64_t kColumns = 256;

  PackedSplit(const PackedGemmKernels& kernels, std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t kEnoughTasks = 16;  // occupies eight threads fully
    const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(rows, kernels.row_block));
    row_block = std::max(kGemmRows, round_up(ceil_div(rows, blocks), kGemmRows));
    column_block = kColumns;
    const auto count = [&] { return ceil_div(rows, row_block) * ceil_div(columns, column_block); };
    while (column_block > kernels.panel_columns && count() < kEnoughTasks) column_block /= 2;
    column_blocks = ceil_div(columns, column_block);
    tasks = count();
  }

  MatmulTile tile(std::int64_t task, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t row = task / column_blocks * row_block, column = task % column_blocks * column_block;
    return {row, std::min(row_block, rows - row), column, std::min(column_block, columns - column)};
  }
};

}  // namespace headway
