// A decoder's weights by the names that transformers gives them, packed. Knows no activations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headway/cached_multi_head_attention.h"
#include "headway/packed_matmul.h"
#include "tools/engine/checkpoint.h"
#include "tools/engine/config.h"
#include "tools/engine/norms.h"

namespace headway::engine {

struct DecoderLayer {
  Norm attention_norm, attention_end_norm;  ///< before the attention, and behind it in Gemma
  CachedMultiHeadAttention attention;
  Norm ffn_norm, ffn_end_norm;
  PackedMatmul up;  ///< with the activation, gated but in GPT-2
  PackedMatmul down;
};

struct DecoderWeights {
  std::vector<float> embedding;  // [vocab, E]
  std::vector<float> positions;  // [positions, E]; empty where positions are rotated
  std::vector<std::unique_ptr<RotaryTable>> rotary;
  std::vector<DecoderLayer> layers;
  Norm end_norm;
  std::optional<PackedMatmul> logits;
  std::int64_t parameters = 0;
};

/// `attention` has the limits and types of the cache; the rest of it is the config's. Throws Error naming the tensor.
DecoderWeights load_weights(const Checkpoint& checkpoint, const DecoderConfig& config,
                            const CachedAttentionSpec& limits);

}  // namespace headway::engine
