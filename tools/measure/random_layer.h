// A self-attention layer with random weights and input, ready to be timed: the same weights at every head count.
#pragma once

#include <cstdint>

#include "headway/multi_head_attention.h"
#include "tools/command/execution.h"
#include "tools/measure/layer_sizes.h"

namespace headway::tools {

/// From a fixed seed, scaled so that softmax rows are neither one-hot nor uniform at any head count. Numbers are f32;
/// for bf16 they are exactly representable in bf16, and the layer gets them as bf16.
class RandomLayer {
 public:
  explicit RandomLayer(const LayerSizes& sizes);
  /// Of the sizes' type.
  MultiHeadAttentionWeights views() const;
  /// The same.
  ConstTensorView input_view() const { return given(kInput); }

  std::int64_t embed_dim;
  Tensor in_proj_weight;  // [3E, E]
  Tensor in_proj_bias;    // [3E]
  Tensor out_weight;      // [E, E]
  Tensor out_bias;        // [E]
  Tensor input;           // [B, S, E]

 private:
  enum { kInProjWeight, kInProjBias, kOutWeight, kOutBias, kInput, kTensors };
  ConstTensorView given(int which) const;

  Tensor halves_[kTensors];  // bf16, or nothing
};

/// Bytes that a RandomLayer and `plans` packed layers of these sizes need, roughly.
double estimated_bytes(const LayerSizes& sizes, std::size_t plans);

/// One head count of it, planned and with memory of its own to run in.
class PlannedLayer {
 public:
  PlannedLayer(const LayerSizes& sizes, std::int64_t heads, const RandomLayer& random, const Execution& execution);
  void run(Profiler* profiler = nullptr);
  const MultiHeadAttention& layer() const { return layer_; }
  const Tensor& output() const { return output_; }  // [B, S, E], f32 or bf16
  /// Flops that the mathematics needs: projections and attention.
  std::int64_t nominal_flops() const;

 private:
  MultiHeadAttention layer_;
  Threads threads_;
  AlignedBuffer workspace_;
  Tensor output_;
  MultiHeadAttentionArgs args_;
};

}  // namespace headway::tools
