// The softmax of a query tile: rows of scores to rows of probabilities, masks and scores outputs on the way. Hidden
// keys get probability 0 by selection. Knows no products.
#pragma once

#include <cstdint>

#include "ops/attention/onednn/task.h"

namespace headway {

class OnednnSoftmax {
 public:
  explicit OnednnSoftmax(const OnednnTile& tile);
  /// Scores, which are still to be multiplied by `score_scale`, to probabilities in scratch.probs.
  void run(float score_scale);
  /// Writes the rows of args.log_sum_exp. After run().
  void write_log_sum_exps() const;

  /// Whether some key of some row has probability 0 by a mask.
  bool hides() const { return hides_; }
  /// Whether row i sees no key.
  bool is_empty(std::int64_t i) const { return (empty_ >> i & 1) != 0; }
  /// What the context of row i is still to be divided by.
  float divisor(std::int64_t i) const { return divisor_[i]; }

 private:
  void row(std::int64_t i);
  bool adds_bias(std::int64_t i);
  void gather(std::int64_t i, float* row) const;
  void store_probs(std::int64_t i, const float* row) const;
  void write_scores(std::int64_t i, const float* row, float elsewhere) const;
  bool is_direct() const;
  void row_direct(std::int64_t i);

  const OnednnTile& tile_;
  float score_scale_ = 1;
  bool hides_ = false;
  std::uint64_t empty_ = 0;     // bit i: row i sees no key
  std::int64_t bias_row_ = -1;  // row whose bias is in scratch.bias
  float divisor_[kOnednnTileRows];
  RowSum state_[kOnednnTileRows];  // of each row: of scores that are scaled already
};

static_assert(kOnednnTileRows <= 64, "empty_ has a bit per row");

}  // namespace headway
