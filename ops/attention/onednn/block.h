// One query block of one head on oneDNN products: scale, scores, softmax, context. In bf16 the operands of both
// products are bf16, weights included, and all between them is f32. Knows neither how blocks are shared out nor how
// many threads there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/bias.h"
#include "ops/attention/onednn/workspace.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/bf16.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Scratch of one worker.
struct OnednnBlockScratch {
  std::byte* query;    // [kBlockRows, D] of the spec's type, scaled
  float* scores;       // a dense [rows, columns] a piece, one after the other
  std::byte* weights;  // the same, of the spec's type; in f32 they are the scores
  float* context;      // [kBlockRows, Dv]
  float* row;          // one row of all pieces side by side
  float* bias;         // its bias
  std::byte* keys;     // a copied piece of keys or values, of the spec's type
  std::byte* matmul;
  std::size_t matmul_bytes;
};

/// What all blocks of a run share.
struct OnednnRun {
  const AttentionSpec& spec;
  const AttentionArgs& args;
  const BiasSource& bias;
  const TileMatmulCache& matmuls;
  const SoftmaxKernels& kernels;
  const Bf16Kernels& bf16;
  Profiler* profiler;
};

class OnednnBlock {
 public:
  struct Place {
    std::int64_t batch, head, begin, rows;
  };
  OnednnBlock(const OnednnRun& run, const Place& place, const OnednnBlockScratch& scratch, int worker);
  void compute();

 private:
  struct Rows {
    const std::byte* data;
    std::int64_t stride;
  };
  void scale_query();
  void score();
  void softmax();
  void softmax_row(std::int64_t i);
  bool softmax_is_direct() const;
  void softmax_row_direct(std::int64_t i);
  void weigh_values();
  template <class Real>
  void recompute_nonfinite_rows();
  void write_out();

  Rows dense_rows(const ConstTensorView& tensor, const KeyPiece& piece, std::int64_t width) const;
  bool in_place(const ConstTensorView& tensor, const KeyPiece& piece, const TileMatmulSpec& spec) const;
  bool fill_bias(std::int64_t i);
  struct Seen {
    std::int64_t begin, end;  // of the keys before the tail
    std::int64_t tail;        // where the tail begins
    bool all(const KeyPiece& piece) const { return begin == 0 && end == tail && piece.keys == piece.columns; }
  };
  Seen seen(const KeyPiece& piece, const KeyRange& visible) const;
  float* score_row(const KeyPiece& piece, std::int64_t i) const;
  void gather(std::int64_t i, float* row) const;
  void place_weights(std::int64_t i, const float* row) const;
  std::int64_t bytes_of_elements(std::int64_t count) const;
  void write_scores(std::int64_t i, const float* row, float elsewhere) const;
  template <class Use>
  void pieces(Use use) const {
    each_piece(range_, tail_, piece_granule(run_.spec.type), use);
  }

  const OnednnRun& run_;
  const Place place_;
  const OnednnBlockScratch& at_;
  const int worker_;
  const Visibility visibility_;
  KeyRange range_;  // keys that this block computes scores for, and
  KeyRange tail_;   // the ones at the end that everybody sees
  std::int64_t kv_head_;
  bool bf16_;
  float rest_of_scale_ = 1;   // what the scores are still to be multiplied by
  std::int64_t columns_ = 0;  // of all pieces
  std::int64_t pairs_ = 0;    // (query, key) pairs that the integer rules let through
  int num_pieces_ = 0;
  bool hides_ = false;          // some key of some row has weight 0 by a mask
  std::uint64_t empty_ = 0;     // bit i: row i sees no key
  std::int64_t bias_row_ = -1;  // row whose bias is in at_.bias
  float sum_[kBlockRows];       // what the context of a row is still to be divided by
};

static_assert(kBlockRows <= 64, "empty_ has a bit a row");

}  // namespace headway
