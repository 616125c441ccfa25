// The workspace of a CachedAttention: plans of the sequences and states of split rows for all, scratch per worker.
// Knows sizes, no tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/base/workspace_layout.h"
#include "ops/cached_attention/geometry.h"
#include "ops/cached_attention/schedule.h"
#include "ops/cached_attention/states.h"
#include "ops/simd/few_queries.h"

namespace headway {

/// Keys of each stream in a block of few queries, and of all four.
inline constexpr std::int64_t kStreamSteps = 64;
inline constexpr std::int64_t kStreamKeys = kStreamSteps * kKeyStreams;

/// Floats between gathered rows beyond their own: rows a power of two apart fall into a few sets of the first-level
/// cache.
inline constexpr std::int64_t kGatherPadding = kCacheLineFloats;

/// What a tile keeps from block to block: panels [.., tile_lanes].
struct TilePanels {
  float* queries;                // [D, tile_lanes], scaled
  float* bias_max;               // [tile_lanes]: −inf while every key of the span was hidden
  const std::byte** query_rows;  // [tile_lanes]
  std::byte** out_rows;          // [tile_lanes]
  std::int32_t* first;           // [tile_lanes]: lane sees keys [first, end)
  std::int32_t* end;             // [tile_lanes]
};

/// Scratch of a worker for query tiles, used anew for each key block.
struct TileScratch {
  float* scores;                // [key block + 8, tile_lanes]
  float* block_max;             // [tile_lanes]
  float* rescale;               // [tile_lanes]
  float* bias_rows;             // [tile_lanes, key block]
  float* bias;                  // [key block, tile_lanes]
  float* key;                   // [key block, D + kGatherPadding]
  float* value;                 // [key block, Dv + kGatherPadding]
  float* rows;                  // [tile_lanes, max(D, Dv)]: rows of a type that the panel kernels do not know
  const std::byte** addresses;  // [key block]
};

/// Scratch of a worker for few queries.
struct FewScratch {
  float* queries;           // [few rows, D]
  float* scores;            // [few rows, kStreamKeys]
  float* bias;              // [kStreamKeys]
  float* rescale;           // [few rows]
  const std::byte** key;    // [kKeyStreams, kStreamSteps + kPrefetchSteps]
  const std::byte** value;  // the same
};

class CachedWorkspace {
 public:
  CachedWorkspace(const CachedAttentionSpec& spec, const CachedGeometry& geometry);

  std::size_t bytes(int workers) const { return layout_.bytes(workers); }
  SequencePlan* plans(std::byte* workspace) const { return plans_.in(workspace); }
  /// The state of a split row.
  SoftmaxState state(std::byte* workspace, std::int64_t row) const;
  TileScratch tile_scratch(std::byte* workspace, int worker) const;
  TilePanels panels(std::byte* workspace, int worker, int tile) const;
  /// A state of a tile's lanes: `level` counts those that are kept at once.
  SoftmaxState tile_state(std::byte* workspace, int worker, int tile, std::int64_t level) const;
  /// States of few rows: `level` counts those that are kept at once.
  SoftmaxState few_state(std::byte* workspace, int worker, std::int64_t level) const;
  FewScratch few_scratch(std::byte* workspace, int worker) const;

 private:
  struct Tile {
    WorkspaceArray<float> queries, bias_max, maximum, sum, live, context;
    WorkspaceArray<const std::byte*> query_rows;
    WorkspaceArray<std::byte*> out_rows;
    WorkspaceArray<std::int32_t> first, end;
  };

  std::int64_t value_head_dim_, tile_lanes_;
  WorkspaceLayout layout_;
  WorkspaceArray<SequencePlan> plans_;
  WorkspaceArray<float> maximum_, sum_, live_, context_;  // of split rows
  WorkspaceArray<float> scores_, block_max_, rescale_, bias_rows_, bias_, key_, value_, rows_;
  WorkspaceArray<const std::byte*> addresses_;
  Tile tiles_[CachedGeometry::kMaxTiles];
  WorkspaceArray<float> few_queries_, few_scores_, few_bias_, few_rescale_, few_maximum_, few_sum_, few_live_,
      few_context_;
  WorkspaceArray<const std::byte*> few_key_, few_value_;
};

}  // namespace headway
