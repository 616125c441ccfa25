// The products in front of the core: query, key and value projections as one list of tasks. Knows where rows come from
// and where heads go, nothing of attention.
#pragma once

#include <cstdint>
#include <vector>

#include "headway/multi_head_attention.h"
#include "ops/matmul/matmul.h"
#include "ops/multi_head_attention/projected_layout.h"

namespace headway {

/// Rows [B, S, width] of one input with dense rows: where they start, and the elements between batches.
struct InputRows {
  const std::byte* data = nullptr;
  std::int64_t batch_stride = 0;
};

/// Which of the layer's inputs a projection reads.
enum Input { kQueryInput, kKeyInput, kValueInput, kInputs };

class Projections {
 public:
  /// `same` has the same weights, for other sizes; null: none.
  Projections(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& weights,
              const ProjectedLayout& layout, const Projections* same);

  /// True when every batch entry is a product of its own, so that batches may have any stride; otherwise all B·S rows
  /// of an input must be one dense matrix. That is so when keys are appended: their rows stand between the batches.
  bool batches_apart() const { return batches_apart_; }
  /// False for inputs that no product reads (key and value in self attention).
  bool reads(Input input) const;
  std::size_t workspace_bytes(int workers) const;
  /// All tasks of all products in one parallel loop, so that a small product does not leave threads idle.
  void run(const InputRows (&inputs)[kInputs], std::byte* projected, std::byte* workspace, const Threads& threads,
           Profiler* profiler) const;
  std::string explain() const;

 private:
  struct Product {
    PlannedMatmul matmul;
    Input input;
    std::int64_t y_offset;
    std::int64_t y_batch_stride;
  };
  void add(const PlannedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias, Input input,
           const ProjectedOperand& target, const Projections* same);

  std::vector<Product> products_;
  std::int64_t element_bytes_ = 0;
  std::int64_t repeats_ = 1;  // of each product: batches, when they are apart
  bool stacked_ = false;      // query, key and value are one product
  bool batches_apart_ = false;
};

}  // namespace headway
