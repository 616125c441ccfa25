// LayerNorm and RMSNorm of rows, which attention's library does not have: every engine brings its own.
#pragma once

#include <cstdint>
#include <vector>

#include "headway/threads.h"

namespace headway::engine {

/// y = (x − mean)/√(variance + ε)·w + b with a bias, else y = x/√(mean(x²) + ε)·w, over the width of each row.
struct Norm {
  std::vector<float> weight;  // [width]; empty: there is no such norm
  std::vector<float> bias;    // [width]; empty: RMSNorm
  float epsilon = 0;

  explicit operator bool() const { return !weight.empty(); }
  /// x and y are [rows, width], and may be the same.
  void run(const float* x, float* y, std::int64_t rows, const Threads& threads) const;
};

}  // namespace headway::engine
