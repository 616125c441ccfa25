// One query tile of one head on oneDNN products: scale, scores, softmax, context. In bf16 the operands of both products
// are bf16, probabilities included, and everything between them is f32. Knows neither how tiles are shared out nor how
// many threads there are.
#pragma once

#include "ops/attention/onednn/softmax.h"
#include "ops/attention/onednn/task.h"

namespace headway {

class OnednnQueryTile {
 public:
  OnednnQueryTile(const OnednnRun& run, const OnednnTileRows& rows, const OnednnScratch& scratch, int worker);
  void compute();

 private:
  struct Rows {
    const std::byte* data;
    std::int64_t stride;
  };
  void scale_query();
  void multiply_keys();
  void multiply_values();
  template <class Real>
  void recompute_nonfinite_rows();
  void write_out();

  Rows copy_rows(const ConstTensorView& tensor, const OnednnKeyBlock& block, std::int64_t width) const;
  bool in_place(const ConstTensorView& tensor, const OnednnKeyBlock& block, const TileMatmulSpec& spec) const;
  std::int64_t bytes_of_elements(std::int64_t count) const;

  const OnednnTile tile_;
  OnednnSoftmax softmax_;
  std::int64_t kv_head_;
  float score_scale_ = 1;    // what the scores are still to be multiplied by
  std::int64_t pairs_ = 0;   // (query, key) pairs that the integer rules let through
  bool recomputed_ = false;  // the context is divided already
};

}  // namespace headway
