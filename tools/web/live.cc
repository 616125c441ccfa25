// What the live page calls: one layer in three steps whose inputs and results stay in memory that JavaScript looks
// into. The projections are the packed product, the heads are strided views of its result. Knows nothing of the page.
//
// Letters: S tokens, E width, h heads, D = E / h.
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "headway/attention.h"
#include "headway/packed_matmul.h"
#include "headway/version.h"
#include "ops/simd/target.h"

namespace headway {
namespace {

std::string last_error, last_text;

/// Buffers of a layer as JavaScript numbers them.
enum Buffer { kX, kInWeight, kInBias, kOutWeight, kOutBias, kQkv, kContext, kOut, kProbabilities, kBuffers };

class Layer {
 public:
  Layer(std::int64_t tokens, std::int64_t width) : tokens_(tokens), width_(width) {
    const Dims dims[kBuffers] = {
        {tokens, width}, {3 * width, width}, {3 * width}, {width, width}, {width}, {tokens, 3 * width},
        {tokens, width}, {tokens, width},    {0}};
    for (int b = 0; b < kBuffers; ++b) buffers_[b] = Tensor(DataType::kF32, dims[b]);
  }

  float* buffer(int which) { return buffers_[which].data<float>(); }

  /// Packs the weights as they are now. Needed once, whatever the number of heads.
  void pack() {
    in_.emplace(PackedMatmulSpec{3 * width_, width_}, PackedMatmulWeights{view(kInWeight), view(kInBias), {}, {}});
    out_.emplace(PackedMatmulSpec{width_, width_}, PackedMatmulWeights{view(kOutWeight), view(kOutBias), {}, {}});
    book(in_->workspace_bytes(1));
    book(out_->workspace_bytes(1));
  }

  /// Plans the heads: nothing but the views and the tiles of the attention depends on their number.
  void split(std::int64_t heads, bool causal, bool probabilities) {
    AttentionSpec spec;
    spec.num_heads = heads;
    spec.query_len = spec.key_len = tokens_;
    spec.head_dim = width_ / heads;
    if (causal) spec.causal = Causal::kTopLeft;
    if (probabilities) spec.scores_output = ScoresOutput::kProbabilities;
    attention_.emplace(spec);
    book(attention_->workspace_bytes(1));
    buffers_[kProbabilities] = Tensor(DataType::kF32, probabilities ? Dims{1, heads, tokens_, tokens_} : Dims{0});
  }

  // q, k, v = x·Wqkvᵀ + b, all heads in one product
  void project() { in_->run({view(kX), {}, buffers_[kQkv].view()}, workspace(), Threads::serial()); }

  // head i = softmax(qᵢ·kᵢᵀ / √D)·vᵢ, for every head
  void attend() {
    AttentionArgs args;
    args.query = heads_of(kQkv, 0);
    args.key = heads_of(kQkv, 1);
    args.value = heads_of(kQkv, 2);
    args.out = heads_of(kContext, 0);
    if (attention_->spec().scores_output != ScoresOutput::kNone) args.scores = buffers_[kProbabilities].view();
    attention_->run(args, workspace(), Threads::serial());
  }

  // out = concat(head 1 … head h)·Woᵀ + b
  void output() { out_->run({view(kContext), {}, buffers_[kOut].view()}, workspace(), Threads::serial()); }

  std::string explain() const { return attention_->explain(); }

 private:
  ConstTensorView view(Buffer which) const { return buffers_[which].view(); }

  /// [S, …] as [1, h, S, D]: head i is the columns from i·D on, where they lie.
  TensorView heads_of(Buffer which, std::int64_t part) {
    const TensorView rows = buffers_[which].view().sliced(1, part * width_, (part + 1) * width_);
    return rows.split_axis(1, attention_->spec().num_heads).split_axis(0, 1).permuted({0, 2, 1, 3});
  }

  void book(std::size_t bytes) {
    if (bytes > workspace_.size_bytes()) workspace_ = AlignedBuffer(bytes);
  }
  std::byte* workspace() const { return workspace_.data(); }

  std::int64_t tokens_, width_;
  Tensor buffers_[kBuffers];
  std::optional<PackedMatmul> in_, out_;
  std::optional<Attention> attention_;
  AlignedBuffer workspace_;
};

/// 0, or 1 where it threw: the message is live_error()'s.
template <class Fn>
int guarded(Fn&& fn) {
  try {
    fn();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return 1;
  }
}

}  // namespace
}  // namespace headway

#define LIVE_EXPORT extern "C" __attribute__((used, visibility("default")))

using headway::guarded;
using headway::Layer;

LIVE_EXPORT Layer* live_layer(int tokens, int width) {
  std::unique_ptr<Layer> layer;
  guarded([&] { layer = std::make_unique<Layer>(tokens, width); });
  return layer.release();
}
LIVE_EXPORT void live_free(Layer* layer) { delete layer; }
LIVE_EXPORT float* live_buffer(Layer* layer, int which) { return layer->buffer(which); }
LIVE_EXPORT int live_pack(Layer* layer) {
  return guarded([&] { layer->pack(); });
}
LIVE_EXPORT int live_split(Layer* layer, int heads, int causal, int probabilities) {
  return guarded([&] { layer->split(heads, causal != 0, probabilities != 0); });
}
LIVE_EXPORT int live_project(Layer* layer) {
  return guarded([&] { layer->project(); });
}
LIVE_EXPORT int live_attend(Layer* layer) {
  return guarded([&] { layer->attend(); });
}
LIVE_EXPORT int live_output(Layer* layer) {
  return guarded([&] { layer->output(); });
}
LIVE_EXPORT const char* live_explain(Layer* layer) { return (headway::last_text = layer->explain()).c_str(); }
LIVE_EXPORT const char* live_target() { return (headway::last_text = headway::simd_target()).c_str(); }
LIVE_EXPORT const char* live_error() { return headway::last_error.c_str(); }
