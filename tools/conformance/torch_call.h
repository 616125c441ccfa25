// Attention called the way torch spells it: nn.MultiheadAttention and scaled_dot_product_attention, from tensors as a
// file holds them. Translates ranks, axes and masks into specs; computes nothing itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/execution.h"
#include "tools/model/layer_weights.h"
#include "tools/model/tensors.h"

namespace headway::tools {

/// What to compute besides the output.
enum class WeightsOutput { kNone, kMean, kPerHead };

struct AttentionVariant {
  bool causal = false;  ///< top-left
  std::optional<float> scale;
  float softcap = 0;
  Window window;
  WeightsOutput weights = WeightsOutput::kNone;
};

/// nn.MultiheadAttention: masks that are True hide; a rank-3 attn_mask is [B·H, Sq, Skv].
struct MhaCall {
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 0;  ///< 0: num_heads
  bool batch_first = true;
  bool add_zero_attn = false;
  AttentionVariant variant;
  ConstTensorView query;             ///< [B, Sq, E], [Sq, B, E] or [Sq, E]
  ConstTensorView key;               ///< the same with Skv and kdim
  ConstTensorView value;             ///< the same with Skv and vdim
  ConstTensorView key_padding_mask;  ///< [B, Skv] or [Skv], bool or float
  ConstTensorView attn_mask;         ///< [Sq, Skv] or [B·H, Sq, Skv], bool or float
  ConstTensorView key_lengths;       ///< [B] i32 or i64; not of torch
};

/// scaled_dot_product_attention: a mask that is True attends; leading axes broadcast.
struct SdpaCall {
  AttentionVariant variant;
  ConstTensorView query;        ///< [.., Sq, D]
  ConstTensorView key;          ///< [.., Skv, D]; its heads (axis −3) may be a divisor of the query's
  ConstTensorView value;        ///< [.., Skv, Dv]
  ConstTensorView attn_mask;    ///< broadcasts right-aligned against [.., Sq, Skv], bool or float
  ConstTensorView key_lengths;  ///< [B] i32 or i64; not of torch
};

/// How much of a row of a result comes from heads that see no key at all.
enum class RowState : char { kSeesKeys, kSomeHeadsEmpty, kAllHeadsEmpty };

struct CallResult {
  Tensor output;   ///< in the axes that torch returns; bf16 when the call was, else f32
  Tensor weights;  ///< likewise, f32 always; of no element unless asked for
  bool has_weights = false;
  std::vector<RowState> output_rows;   ///< a state for each innermost row of output
  std::vector<RowState> weights_rows;  ///< likewise
  std::vector<float> empty_output;     ///< what an output row is when all its heads are empty: the output bias, or 0
  std::int64_t empty_rows = 0;         ///< over batch, head and query
  std::string implementation;
};

/// Both run in bf16 when the weights, or the query, are bf16, and then all inputs must be; else in f32.
/// Both throw kInvalidArgument naming the tensor and both numbers.
CallResult call_mha(const LayerWeights& weights, const MhaCall& call, const Execution& execution);
CallResult call_sdpa(const SdpaCall& call, const Execution& execution);

}  // namespace headway::tools
