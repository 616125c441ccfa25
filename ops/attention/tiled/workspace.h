// The workspace of the tiled engine: what one worker holds. Knows sizes, no tensors.
#pragma once

#include "ops/attention/tiled/lane_rows.h"
#include "ops/attention/tiled/query_tile.h"
#include "ops/base/workspace_layout.h"

namespace headway {

class TiledWorkspace {
 public:
  TiledWorkspace(const AttentionSpec& spec, const AttentionTileKernels& kernels, const TiledGeometry& geometry);

  const WorkspaceLayout& layout() const { return layout_; }
  /// Of one worker: `region` is layout().worker_region().
  BlockScratch block_scratch(std::byte* region) const;
  float* score_rows(std::byte* region) const { return score_rows_.in(region); }
  LaneTables lane_tables(std::byte* region, std::int64_t tile) const;
  QueryTilePanels panels(std::byte* region, std::int64_t tile) const;

 private:
  /// Of one query tile of a task.
  struct Tile {
    WorkspaceArray<const std::byte*> query_rows;
    WorkspaceArray<std::byte*> out_rows;
    WorkspaceArray<float*> score_rows;
    WorkspaceArray<std::int32_t> first, end;
    WorkspaceArray<float> queries, context, maximum, sum, bias_max;
  };

  WorkspaceLayout layout_;
  WorkspaceArray<float> scores_, block_max_, rescale_, bias_rows_, bias_, key_, value_, score_rows_;
  Tile tiles_[TiledGeometry::kMaxTilesPerTask];
};

}  // namespace headway
