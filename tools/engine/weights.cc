// GPT-2 stores weights as [in, out] and query, key and value in one; the Llama family as [out, in], one by one.
#include "tools/engine/weights.h"

#include <utility>

#include "headway/error.h"

namespace headway::engine {
namespace {

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const DecoderConfig& config, const CachedAttentionSpec& limits)
      : checkpoint_(checkpoint), config_(config), limits_(limits) {}

  DecoderWeights run() {
    for (RotarySpec spec : config_.rotary) {
      spec.positions = limits_.max_cache;
      result_.rotary.push_back(std::make_unique<RotaryTable>(spec));
    }
    root_ = checkpoint_.has(config_.gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight")
                ? (config_.gpt2 ? "transformer." : "model.")
                : "";
    const std::string embedding = root_ + (config_.gpt2 ? "wte.weight" : "embed_tokens.weight");
    result_.embedding = floats(embedding, {config_.vocab, config_.width});
    if (config_.gpt2) result_.positions = floats(root_ + "wpe.weight", {config_.positions, config_.width});
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
      result_.layers.push_back(config_.gpt2 ? gpt2_layer(i) : llama_layer(i));
    }
    result_.end_norm = norm(root_ + (config_.gpt2 ? "ln_f" : "norm"), config_.gpt2);
    const bool tied = !checkpoint_.has("lm_head.weight");
    const std::vector<float> head =
        tied ? std::vector<float>() : floats("lm_head.weight", {config_.vocab, config_.width});
    PackedMatmulWeights weights;
    weights.weight =
        view_of(tied ? std::as_const(result_.embedding).data() : head.data(), {config_.vocab, config_.width});
    result_.logits.emplace(PackedMatmulSpec{config_.vocab, config_.width, Activation::kNone}, weights);
    return std::move(result_);
  }

 private:
  std::vector<float> floats(const std::string& name, const Dims& dims) {
    result_.parameters += element_count(dims);
    return checkpoint_.floats(name, dims);
  }

  Norm norm(const std::string& name, bool biased) {
    Norm result;
    result.weight = floats(name + ".weight", {config_.width});
    for (float& w : result.weight) w += config_.norm_weight_offset;
    if (biased) result.bias = floats(name + ".bias", {config_.width});
    result.epsilon = config_.norm_epsilon;
    return result;
  }

  /// A weight as f32 and its bias, if it has one; views of both as [out, in] and [out].
  struct Linear {
    std::vector<float> weight, bias;
    ConstTensorView weight_view, bias_view;
  };
  Linear linear(const std::string& name, std::int64_t out, std::int64_t in) {
    Linear result;
    if (config_.gpt2) {
      result.weight = floats(name + ".weight", {in, out});
      result.weight_view = view_of(std::as_const(result.weight).data(), {in, out}).permuted({1, 0});
    } else {
      result.weight = floats(name + ".weight", {out, in});
      result.weight_view = view_of(std::as_const(result.weight).data(), {out, in});
    }
    if (!checkpoint_.has(name + ".bias")) return result;
    result.bias = floats(name + ".bias", {out});
    result.bias_view = view_of(std::as_const(result.bias).data(), {out});
    return result;
  }

  CachedMultiHeadAttentionSpec attention_spec(const LayerConfig& layer) const {
    CachedMultiHeadAttentionSpec spec;
    spec.attention = limits_;
    spec.attention.num_heads = config_.num_heads;
    spec.attention.num_kv_heads = config_.num_kv_heads;
    spec.attention.head_dim = config_.head_dim;
    spec.attention.scale = config_.scale;
    spec.attention.softcap = config_.softcap;
    spec.attention.window = layer.window;
    spec.embed_dim = config_.width;
    if (!result_.rotary.empty()) spec.rotary = result_.rotary[layer.rotary].get();
    return spec;
  }

  PackedMatmul matmul(const Linear& linear, Activation activation) const {
    return PackedMatmul({linear.weight_view.dims[0], linear.weight_view.dims[1], activation},
                        {linear.weight_view, linear.bias_view, {}, {}});
  }
  Activation activation() const {
    switch (config_.activation) {
      case FeedForward::kGelu:
        return Activation::kGelu;
      case FeedForward::kGeluTanh:
        return Activation::kGeluTanh;
      case FeedForward::kRelu:
        return Activation::kRelu;
      case FeedForward::kSilu:
        break;
    }
    return Activation::kSilu;
  }

  DecoderLayer gpt2_layer(std::size_t index) {
    const std::string name = root_ + "h." + std::to_string(index) + ".";
    const std::int64_t width = config_.width;
    const Linear qkv = linear(name + "attn.c_attn", 3 * width, width);
    const Linear out = linear(name + "attn.c_proj", width, width);
    CachedMultiHeadAttentionWeights weights;
    ConstTensorView* const parts[] = {&weights.query, &weights.key, &weights.value};
    ConstTensorView* const biases[] = {&weights.query_bias, &weights.key_bias, &weights.value_bias};
    for (int i = 0; i < 3; ++i) {
      *parts[i] = qkv.weight_view.sliced(0, i * width, (i + 1) * width);
      if (qkv.bias_view) *biases[i] = qkv.bias_view.sliced(0, i * width, (i + 1) * width);
    }
    weights.output = out.weight_view;
    weights.output_bias = out.bias_view;
    return {norm(name + "ln_1", true),
            {},
            CachedMultiHeadAttention(attention_spec(config_.layers[index]), weights),
            norm(name + "ln_2", true),
            {},
            matmul(linear(name + "mlp.c_fc", config_.ffn_width, width), activation()),
            matmul(linear(name + "mlp.c_proj", width, config_.ffn_width), Activation::kNone)};
  }

  DecoderLayer llama_layer(std::size_t index) {
    const std::string name = root_ + "layers." + std::to_string(index) + ".", self = name + "self_attn.";
    const std::int64_t width = config_.width, head = config_.head_dim;
    const Linear query = linear(self + "q_proj", config_.num_heads * head, width);
    const Linear key = linear(self + "k_proj", config_.num_kv_heads * head, width);
    const Linear value = linear(self + "v_proj", config_.num_kv_heads * head, width);
    const Linear out = linear(self + "o_proj", width, config_.num_heads * head);
    CachedMultiHeadAttentionSpec spec = attention_spec(config_.layers[index]);
    std::vector<float> query_norm, key_norm;
    if (checkpoint_.has(self + "q_norm.weight")) {
      query_norm = floats(self + "q_norm.weight", {head});
      key_norm = floats(self + "k_norm.weight", {head});
      spec.norm.enabled = true;
      spec.norm.epsilon = config_.norm_epsilon;
      spec.norm.weight_offset = config_.norm_weight_offset;
      spec.norm.query_weight = view_of(std::as_const(query_norm).data(), {head});
      spec.norm.key_weight = view_of(std::as_const(key_norm).data(), {head});
    }
    CachedMultiHeadAttentionWeights weights;
    weights.query = query.weight_view;
    weights.key = key.weight_view;
    weights.value = value.weight_view;
    weights.output = out.weight_view;
    weights.query_bias = query.bias_view;
    weights.key_bias = key.bias_view;
    weights.value_bias = value.bias_view;
    weights.output_bias = out.bias_view;

    const Linear gate = linear(name + "mlp.gate_proj", config_.ffn_width, width);
    const Linear up = linear(name + "mlp.up_proj", config_.ffn_width, width);
    // Gemma has a norm at either end of both halves; the others one before each, the second by this name.
    const std::string second = name + "post_attention_layernorm", ends = name + "pre_feedforward_layernorm";
    const bool both_ends = checkpoint_.has(ends + ".weight");
    return {norm(name + "input_layernorm", false),
            both_ends ? norm(second, false) : Norm(),
            CachedMultiHeadAttention(spec, weights),
            norm(both_ends ? ends : second, false),
            both_ends ? norm(name + "post_feedforward_layernorm", false) : Norm(),
            PackedMatmul({config_.ffn_width, width, activation()},
                         {up.weight_view, up.bias_view, gate.weight_view, gate.bias_view}),
            matmul(linear(name + "mlp.down_proj", width, config_.ffn_width), Activation::kNone)};
  }

  const Checkpoint& checkpoint_;
  const DecoderConfig& config_;
  const CachedAttentionSpec& limits_;
  std::string root_;
  DecoderWeights result_;
};

}  // namespace

DecoderWeights load_weights(const Checkpoint& checkpoint, const DecoderConfig& config,
                            const CachedAttentionSpec& limits) {
  return Loader(checkpoint, config, limits).run();
}

}  // namespace headway::engine
