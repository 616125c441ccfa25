// A self-attention layer on random weights and input, ready to run: what several suites time. Decides the data, not
// what is measured.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "headway/multi_head_attention.h"
#include "perf/measure.h"
#include "perf/shapes.h"

namespace headway::perf {

class RandomLayer {
 public:
  RandomLayer(const SweepShape& shape, DataType type, int workers)
      : input_(in_type(type, random_tensor({shape.batch, shape.seq, shape.embed_dim}, 1.7f, 5))),
        output_(type, input_.dims()) {
    // Projected values of about unit variance, so that softmax rows are neither one-hot nor uniform.
    const float range = 1.7f / std::sqrt(static_cast<float>(shape.embed_dim));
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      weights_.push_back(std::make_shared<const Tensor>(
          in_type(type, random_tensor({shape.embed_dim, shape.embed_dim}, range, seed))));
    }
    MultiHeadAttentionSpec spec;
    spec.type = type;
    spec.batch = shape.batch;
    spec.query_len = shape.seq;
    spec.embed_dim = shape.embed_dim;
    spec.num_heads = shape.num_heads;
    spec.self_attention = true;
    MultiHeadAttentionWeights weights;
    weights.query = weights_[0]->view();
    weights.key = weights_[1]->view();
    weights.value = weights_[2]->view();
    weights.output = weights_[3]->view();
    layer_ = std::make_unique<const MultiHeadAttention>(spec, weights);
    workspace_ = AlignedBuffer(layer_->workspace_bytes(workers));
    args_.query = args_.key = args_.value = std::as_const(input_).view();
    args_.out = output_.view();
  }

  void run(const Threads& threads) const { layer_->run(args_, workspace_.data(), threads); }

  const MultiHeadAttention& layer() const { return *layer_; }
  const MultiHeadAttentionArgs& args() const { return args_; }
  /// Query, key, value and output, [E, E] each.
  const std::vector<std::shared_ptr<const Tensor>>& weights() const { return weights_; }
  double flops() const {
    return static_cast<double>(layer_->projection_flops() + nominal_attention_flops(layer_->core().spec()));
  }

 private:
  Tensor input_, output_;
  std::vector<std::shared_ptr<const Tensor>> weights_;
  std::unique_ptr<const MultiHeadAttention> layer_;
  AlignedBuffer workspace_;
  MultiHeadAttentionArgs args_;
};

}  // namespace headway::perf
