// What config.json of a checkpoint says of a decoder: GPT-2, and the Llama family (Llama, Mistral, Qwen 2 and 3,
// Gemma 2 and 3). Knows no weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/attention.h"
#include "headway/kv_cache.h"

namespace headway::engine {

/// What layers of a decoder differ in.
struct LayerConfig {
  Window window;           ///< a sliding window's left end includes it; none: all tokens before
  std::size_t rotary = 0;  ///< which of DecoderConfig::rotary
};

enum class FeedForward { kGelu, kGeluTanh, kSilu, kRelu };

struct DecoderConfig {
  std::string family;      ///< model_type
  bool gpt2 = false;       ///< LayerNorm, learned positions, weights [in, out]; else RMSNorm, rotation, gated
  std::int64_t width = 0;  ///< E
  std::int64_t ffn_width = 0;
  std::int64_t num_heads = 0;     ///< Hq
  std::int64_t num_kv_heads = 0;  ///< Hkv
  std::int64_t head_dim = 0;      ///< D
  std::int64_t vocab = 0;
  std::int64_t positions = 0;  ///< longest sequence
  std::optional<float> scale;  ///< of the scores; nullopt: 1/√D
  float softcap = 0;           ///< of the scores; 0: off
  float logit_softcap = 0;     ///< of the logits; 0: off
  float norm_epsilon = 0;
  float norm_weight_offset = 0;  ///< 1 for Gemma, whose weights are stored less 1
  float embedding_scale = 1;
  FeedForward activation = FeedForward::kSilu;
  std::vector<LayerConfig> layers;
  std::vector<RotarySpec> rotary;  ///< empty for GPT-2
};

/// Reads a config.json. Throws Error naming the file and the field: kIo, kInvalidArgument for what cannot be right,
/// kUnsupported for a family or a feature that is not computed.
DecoderConfig read_config(const std::string& path);

}  // namespace headway::engine
