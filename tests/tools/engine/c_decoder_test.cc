// The decoder in C beside this file against transformers: each family through a chunked prefill and single tokens over
// a paged cache. Weights and config are read by the engine, attention and products are the C API's alone.
#include "tests/tools/engine/c_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "headway/safetensors.h"
#include "headway_test_paths.h"
#include "tools/engine/checkpoint.h"
#include "tools/engine/config.h"

namespace headway::engine {
namespace {

/// A checkpoint as the decoder in C takes it.
class CModel {
 public:
  explicit CModel(const std::string& folder) : config_(read_config(folder + "/config.json")), checkpoint_(folder) {
    model_.layers = static_cast<std::int64_t>(config_.layers.size());
    model_.width = config_.width;
    model_.ffn_width = config_.ffn_width;
    model_.heads = config_.num_heads;
    model_.kv_heads = config_.num_kv_heads;
    model_.head_dim = config_.head_dim;
    model_.vocab = config_.vocab;
    model_.transposed = config_.gpt2;
    model_.activation =
        config_.activation == FeedForward::kSilu ? HEADWAY_ACTIVATION_SILU : HEADWAY_ACTIVATION_GELU_TANH;
    model_.scale = config_.scale.value_or(std::numeric_limits<float>::quiet_NaN());
    model_.norm_epsilon = config_.norm_epsilon;
    model_.norm_weight_offset = config_.norm_weight_offset;
    model_.embedding_scale = config_.embedding_scale;
    for (std::size_t i = 0; i < config_.rotary.size(); ++i) add_rotary(i);
    config_.gpt2 ? gpt2() : llama();
  }
  const decoder_model& model() const { return model_; }

 private:
  /// Null when there is no such tensor.
  const float* floats(const std::string& name, const Dims& dims) {
    if (!checkpoint_.has(name)) return nullptr;
    return memory_.emplace_back(checkpoint_.floats(name, dims)).data();
  }

  void add_rotary(std::size_t index) {
    const RotarySpec& from = config_.rotary[index];
    headway_rotary_spec* const to = &rotary_[index];
    headway_rotary_spec_init(to);
    to->rotary_dim = from.rotary_dim;
    to->positions = from.positions;
    to->base = from.base;
    to->scaling = static_cast<std::int32_t>(from.scaling.kind);
    to->factor = from.scaling.factor;
    to->original_max_position = from.scaling.original_max_position;
    to->low_freq_factor = from.scaling.low_freq_factor;
    to->high_freq_factor = from.scaling.high_freq_factor;
    model_.rotary[index] = to;
  }

  decoder_layer_weights* layer(std::size_t index) {
    decoder_layer_weights* const w = &model_.layer[index];
    w->window_left = config_.layers[index].window.left;
    w->rotary = config_.rotary.empty() ? -1 : static_cast<int>(config_.layers[index].rotary);
    return w;
  }

  void gpt2() {
    const std::int64_t e = config_.width, f = config_.ffn_width;
    const std::string root = "transformer.";
    model_.embedding = model_.head = floats(root + "wte.weight", {config_.vocab, e});
    model_.positions = floats(root + "wpe.weight", {config_.positions, e});
    model_.end_norm = floats(root + "ln_f.weight", {e});
    model_.end_norm_bias = floats(root + "ln_f.bias", {e});
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
      const std::string name = root + "h." + std::to_string(i) + ".";
      decoder_layer_weights* const w = layer(i);
      w->attention_norm = floats(name + "ln_1.weight", {e});
      w->attention_norm_bias = floats(name + "ln_1.bias", {e});
      w->ffn_norm = floats(name + "ln_2.weight", {e});
      w->ffn_norm_bias = floats(name + "ln_2.bias", {e});
      w->query = floats(name + "attn.c_attn.weight", {e, 3 * e});
      w->query_bias = floats(name + "attn.c_attn.bias", {3 * e});
      w->key = w->query + e;
      w->value = w->key + e;
      w->key_bias = w->query_bias + e;
      w->value_bias = w->key_bias + e;
      w->output = floats(name + "attn.c_proj.weight", {e, e});
      w->output_bias = floats(name + "attn.c_proj.bias", {e});
      w->up = floats(name + "mlp.c_fc.weight", {e, f});
      w->up_bias = floats(name + "mlp.c_fc.bias", {f});
      w->down = floats(name + "mlp.c_proj.weight", {f, e});
      w->down_bias = floats(name + "mlp.c_proj.bias", {e});
    }
  }

  void llama() {
    const std::int64_t e = config_.width, f = config_.ffn_width, d = config_.head_dim;
    const std::int64_t q = config_.num_heads * d, kv = config_.num_kv_heads * d;
    model_.embedding = floats("model.embed_tokens.weight", {config_.vocab, e});
    model_.head = floats("lm_head.weight", {config_.vocab, e});
    if (model_.head == nullptr) model_.head = model_.embedding;
    model_.end_norm = floats("model.norm.weight", {e});
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
      const std::string name = "model.layers." + std::to_string(i) + ".", self = name + "self_attn.";
      decoder_layer_weights* const w = layer(i);
      w->attention_norm = floats(name + "input_layernorm.weight", {e});
      w->ffn_norm = floats(name + "pre_feedforward_layernorm.weight", {e});
      w->ffn_end_norm = floats(name + "post_feedforward_layernorm.weight", {e});
      const float* const second = floats(name + "post_attention_layernorm.weight", {e});
      (w->ffn_norm == nullptr ? w->ffn_norm : w->attention_end_norm) = second;
      w->query = floats(self + "q_proj.weight", {q, e});
      w->key = floats(self + "k_proj.weight", {kv, e});
      w->value = floats(self + "v_proj.weight", {kv, e});
      w->output = floats(self + "o_proj.weight", {e, q});
      w->query_norm = floats(self + "q_norm.weight", {d});
      w->key_norm = floats(self + "k_norm.weight", {d});
      w->gate = floats(name + "mlp.gate_proj.weight", {f, e});
      w->up = floats(name + "mlp.up_proj.weight", {f, e});
      w->down = floats(name + "mlp.down_proj.weight", {e, f});
    }
  }

  DecoderConfig config_;
  Checkpoint checkpoint_;
  std::list<std::vector<float>> memory_;
  headway_rotary_spec rotary_[2];
  decoder_model model_{};
};

class CDecoders : public ::testing::TestWithParam<const char*> {};

TEST_P(CDecoders, LogitsAreThoseOfTransformers) {
  const std::string folder = std::string(HEADWAY_SOURCE_DIR) + "/tests/fixtures/decoders/" + GetParam();
  const CModel model(folder);
  const SafetensorsFile expected = SafetensorsFile::open(folder + "/expected.safetensors");
  for (const std::string prompt : {"0", "1", "2", "3"}) {
    std::vector<std::int32_t> tokens;
    for (const char* const part : {"prompt.", "tokens."}) {
      const ConstTensorView ids = expected.tensor(part + prompt);
      tokens.insert(tokens.end(), ids.as<std::int64_t>(), ids.as<std::int64_t>() + ids.count());
    }
    tokens.pop_back();  // nothing is computed behind the last one
    const auto count = static_cast<std::int64_t>(tokens.size());
    const ConstTensorView want = expected.tensor("logits." + prompt);
    ASSERT_EQ(want.dims[0], count);
    for (const std::int64_t block : {1, 16}) {
      std::vector<float> got(static_cast<std::size_t>(want.count()));
      ASSERT_EQ(decode_tokens_in_c(&model.model(), tokens.data(), count, 11, 23, block, got.data()), 0)
          << "a line of c_decoder.c, " << headway_last_error();
      for (std::int64_t r = 0; r < count; ++r) {
        const float* const a = got.data() + r * want.dims[1];
        const float* const b = want.as<float>() + r * want.dims[1];
        float largest = 0;
        for (std::int64_t v = 0; v < want.dims[1]; ++v) largest = std::max(largest, std::abs(b[v]));
        for (std::int64_t v = 0; v < want.dims[1]; ++v) {
          ASSERT_NEAR(a[v], b[v], 1e-4 * largest) << "prompt " << prompt << ", token " << r << ", blocks of " << block;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CDecoders, ::testing::Values("gpt2", "llama", "qwen3", "gemma3", "mistral"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace headway::engine
