// What the files of `onednn_tiles` share: the run, a worker's scratch, and where a query tile lies among queries, keys
// and scratch. Knows neither how tiles are shared out nor what is computed on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/bias.h"
#include "ops/attention/onednn/key_block.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/bf16.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Scratch of one worker.
struct OnednnScratch {
  std::byte* query;  // [kOnednnTileRows, D] of the spec's type, scaled
  float* scores;     // a dense [rows, columns] per key block, one after the other
  std::byte* probs;  // the same, of the spec's type; in f32 they replace the scores
  float* context;    // [kOnednnTileRows, Dv]
  float* row;        // one row of all key blocks, contiguous
  float* bias;       // its bias
  std::byte* keys;   // a copied block of keys or values, of the spec's type
  std::byte* matmul;
  std::size_t matmul_bytes;
};

/// What all query tiles of a run share.
struct OnednnRun {
  const AttentionSpec& spec;
  const AttentionArgs& args;
  const BiasSource& bias;
  const TileMatmulCache& matmuls;
  const SoftmaxKernels& kernels;
  const Bf16Kernels& bf16;
  Profiler* profiler;
};

/// Queries [begin, begin + count) of one head.
struct OnednnTileRows {
  std::int64_t batch, head, begin, count;
};

/// A query tile and the keys that it works on.
class OnednnTile {
 public:
  OnednnTile(const OnednnRun& run, const OnednnTileRows& rows, const OnednnScratch& scratch, int worker);

  const OnednnRun& run;
  const OnednnTileRows rows;
  const OnednnScratch& scratch;
  const int worker;
  const Visibility visibility;
  const bool bf16;
  KeyRange range;            // keys that scores are computed for, and
  KeyRange always_visible;   // those at the end that every query sees
  std::int64_t columns = 0;  // of all key blocks
  int num_blocks = 0;

  template <class Use>
  void each_block(Use use) const {
    each_key_block(range, always_visible, key_granule(run.spec.type), use);
  }
  /// Scores of row i against a block.
  float* score_row(const OnednnKeyBlock& block, std::int64_t i) const {
    return scratch.scores + rows.count * block.column + i * block.columns;
  }
  /// Keys of a block that a row sees by the integer rules, counted from the block's first key.
  struct Seen {
    std::int64_t begin, end;  // before the always visible keys
    std::int64_t tail;        // where the always visible keys begin
    bool all(const OnednnKeyBlock& block) const { return begin == 0 && end == tail && block.keys == block.columns; }
  };
  Seen seen(const OnednnKeyBlock& block, const KeyRange& visible) const;
  /// Bias of row i over all columns into scratch.bias: user masks, then −inf where integers hide and in padding
  /// columns. Returns whether anything may be hidden.
  bool fill_bias(std::int64_t i) const;
};

}  // namespace headway
