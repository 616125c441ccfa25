// What a node of ONNX's Attention asks for, as the native spec plus what the native one has no word for: a past, packed
// heads, narrow types. Decides the semantics (those of onnx 1.23); moves no data.
#pragma once

#include "headway/attention.h"
#include "headway/operator.h"

namespace headway {

/// Positions of the inputs and of the outputs.
struct OnnxAttentionAt {
  static constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kPastKey = 4, kPastValue = 5, kLengths = 6;
  static constexpr std::size_t kOut = 0, kPresentKey = 1, kPresentValue = 2, kScores = 3;
};

/// How the numbers are computed.
enum class OnnxArithmetic {
  kNative,         ///< headway::Attention on f32 or bf16; narrow types are widened and the result is rounded once
  kDouble,         ///< f64 throughout: the reference
  kPerOpRounding,  ///< every step rounded, as the operator's function body writes it: attribute per_op_rounding
};

struct OnnxAttention {
  AttentionSpec core;         ///< over all keys, past included
  std::int64_t past = 0;      ///< keys of the past
  bool has_past = false;      ///< given, even if empty
  bool packed_heads = false;  ///< query, key, value and out are [B, S, H·D]
  DataType type;              ///< of query, key, out and scores
  DataType value_type;        ///< of value
  DataType softmax_type;      ///< of the softmax
  OnnxArithmetic arithmetic = OnnxArithmetic::kNative;
  bool gives_offsets = false;  ///< the run makes AttentionArgs::offsets: past, or length − Sq
  std::size_t outputs = 1;     ///< of the node
};

/// Sizes as far as they are known.
struct OnnxAttentionSizes {
  Dim batch, num_heads, num_kv_heads, query_len, past, key_len, head_dim, value_head_dim;
};

/// The operator's rule: checks the node and says what is known of its outputs.
std::vector<ValueInfo> infer_onnx_attention(const InferContext& node);

/// What to plan, of a node that the rule has passed.
OnnxAttention read_onnx_attention(const NodeContext& node);

}  // namespace headway
