// One query tile against the key blocks of its task: the order of the kernels' steps, the running softmax between them,
// and the folding of spans. Knows neither how tasks are cut nor where keys lie.
#pragma once

#include <cstdint>

#include "ops/cached_attention/call.h"
#include "ops/cached_attention/key_block.h"
#include "ops/cached_attention/states.h"
#include "ops/cached_attention/workspace.h"

namespace headway {

class CachedQueryTile {
 public:
  /// Finds the rows of the tile and loads the queries, scaled. `keys`, `scratch` and the workspace outlive it.
  CachedQueryTile(const HeadKeys& keys, const TileRows& rows, const CachedWorkspace& workspace, std::byte* memory,
                  int worker, int tile);

  /// Keys of the task that some row sees.
  const KeyRange& seen() const { return any_; }
  /// Begins the span at `position`, counted in spans.
  void begin_span(std::int64_t position);
  /// Adds one block of keys to the running softmax and context of the span.
  void add_block(const CachedKeyBlock& block);
  void end_span();

  /// Normalises and writes the rows of the output.
  void write_rows();
  /// Writes the states of the rows instead, `states` being that of row 0 of the sequence and key/value head.
  void write_states(const SoftmaxState& states);

 private:
  struct FoldSpans {
    CachedQueryTile* tile;
    void operator()(std::int64_t a, std::int64_t b) const;
  };
  /// Keys of a block that the tile works on: vector v sees none from vector_end[v] on, and up to `limited` every row
  /// sees all of them.
  struct TileKeys {
    std::int64_t begin, end, limited;
    std::int64_t vector_end[3];
  };

  void find_rows(const TilePanels& panels);
  void load_queries();
  TileKeys keys_of(const CachedKeyBlock& block) const;
  void score(const CachedKeyBlock& block, const TileKeys& keys, std::int64_t from, std::int64_t to, float* block_max);
  void load_bias(const TileKeys& keys);
  void adjust(const TileKeys& keys, std::int64_t from);
  SoftmaxState finished_state() { return workspace_->tile_state(memory_, worker_, tile_, spans_.finish()); }
  /// rows[lane] = factor[lane] · context. False where an element is NaN or infinite.
  bool store(const SoftmaxState& state, DataType type, const float* factor, std::byte* const* rows) const;
  /// Computes the context of a lane again where a hidden NaN or infinity reached it: a row of Dv floats, in scratch.
  /// Null where it stands.
  float* recomputed(const SoftmaxState& state, std::int64_t lane) const;
  std::int64_t lanes() const { return std::int64_t{rows_.vectors} * keys_->call.geometry.lanes; }

  const HeadKeys* keys_;
  TileRows rows_;
  const CachedWorkspace* workspace_;
  std::byte* memory_;
  int worker_, tile_;
  TilePanels panels_;
  TileScratch scratch_;
  KeyRange any_, all_;           // hull of what rows see, and what all of them do
  std::int64_t vector_last_[3];  // largest end of the rows of a vector, made non-decreasing
  StateTree<FoldSpans> spans_;
  std::int64_t span_ = 0;
  SoftmaxState state_;        // of the span
  bool has_context_ = false;  // some block was added to the span
};

}  // namespace headway
