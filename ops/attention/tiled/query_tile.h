// One query tile against the key blocks of its task: the order of the kernels' steps, and the running softmax between
// them. Knows neither how tasks are cut nor how keys are packed.
#pragma once

#include <cstdint>

#include "ops/attention/tiled/key_block.h"
#include "ops/attention/tiled/lane_rows.h"
#include "ops/attention/tiled/task.h"
#include "ops/simd/softmax.h"

namespace headway {

/// State of a query tile, kept from block to block.
struct QueryTilePanels {
  float* queries;   // [D, tile_lanes], scaled
  float* context;   // [Dv, tile_lanes]
  float* maximum;   // [tile_lanes]
  float* sum;       // [tile_lanes]
  float* bias_max;  // [tile_lanes]: −inf while the masks hid every key
};

class QueryTile {
 public:
  QueryTile() = default;
  /// Finds the rows of the tile. `task` must outlive it.
  QueryTile(const TiledTask& task, const QueryTileRows& rows, const LaneTables& tables, const QueryTilePanels& panels,
            const Visibility& visibility);

  const TiledTask& task() const { return *task_; }
  const LaneRows& rows() const { return rows_; }
  const QueryTilePanels& panels() const { return panels_; }
  int vectors() const { return rows_.tile.vectors; }
  std::int64_t lanes() const { return static_cast<std::int64_t>(rows_.tile.vectors) * task_->geometry.lanes; }
  /// Where the biased scores of a lane are collected; set before the first block when scores are an output.
  void set_score_row(std::int64_t lane, float* row) { rows_.tables.score_rows[lane] = row; }

  /// Loads the queries, scaled, and clears the running state; nothing from the second call on. Called when the tile's
  /// first block comes: the panel of queries is then still in the first-level cache.
  void begin();
  /// Adds one block of keys to the running softmax and context, and to the scores where they are an output.
  void add_block(const KeyBlock& block);
  /// Whether a lane saw no key at all, decided on the masks. After the last block.
  bool is_empty_row(std::int64_t lane) const;
  /// Writes the rows of args.log_sum_exp. After the last block, before finish().
  void write_log_sum_exps(const SoftmaxKernels& kernels) const;
  /// Normalises, writes the rows of the output, and recomputes those that a hidden NaN or infinity reached.
  void finish() const;

 private:
  void store_context() const;

  const TiledTask* task_ = nullptr;
  LaneRows rows_{};
  QueryTilePanels panels_{};
  bool begun_ = false;
  bool has_context_ = false;  // some block was added
};

}  // namespace headway
