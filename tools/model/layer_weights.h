// Weights of one attention layer out of a safetensors file, by the names that state dicts use. Knows no inputs.
#pragma once

#include <cstdint>
#include <string>

#include "headway/multi_head_attention.h"
#include "headway/safetensors.h"
#include "tools/model/tensors.h"

namespace headway::tools {

/// Views into the file (or into `pool`, for weights that are neither f32 nor bf16) and the sizes they imply.
struct LayerWeights {
  DataType type = DataType::kF32;  ///< of all views: bf16 when the file's are, else f32
  MultiHeadAttentionWeights views;
  std::int64_t embed_dim = 0;
  std::int64_t kdim = 0;
  std::int64_t vdim = 0;
  F32Pool pool;
};

/// Reads the layer whose names start with `prefix`, in either spelling:
///   in_proj_weight | q_proj_weight k_proj_weight v_proj_weight, in_proj_bias, bias_k, bias_v, out_proj.weight|.bias
///   q_proj.weight k_proj.weight v_proj.weight (.bias each), out_proj or o_proj .weight|.bias
/// Throws kInvalidArgument naming the tensor and both numbers, or both types when some are bf16 and some are not.
LayerWeights read_layer_weights(const SafetensorsFile& file, const std::string& prefix);

/// Throws kInvalidArgument for a float tensor under the prefix that is none of these: such a layer computes something
/// else.
void refuse_unknown_weights(const SafetensorsFile& file, const std::string& prefix);

/// What stands before the layer's names, such as "encoder.layer.0.self_attn."; empty for bare names. Throws
/// kInvalidArgument when the file has no such layer, or more than one.
std::string find_layer_prefix(const SafetensorsFile& file);

/// Throws kInvalidArgument unless the weights' rows divide into these heads.
void check_heads(const LayerWeights& weights, std::int64_t num_heads, std::int64_t num_kv_heads);

}  // namespace headway::tools
