// What com.microsoft's MultiHeadAttention and Attention have in common once query, key and value are heads: their
// masks, their past, their bias. Decides what becomes a mask of the core and what is copied. Knows neither how the
// heads were packed nor that there are projections.
#pragma once

#include "headway/attention.h"
#include "headway/operator.h"
#include "ops/base/workspace_layout.h"

namespace headway {

/// What the mask of a node is; all are i32. A key that is masked gets mask_filter_value added to its score: it is not
/// hidden, so a row that is masked everywhere is as if it had no mask.
enum class MicrosoftMask {
  kNone,
  kEnds,           ///< [B], or [3B + 2] of which the first B count: keys from there on are masked
  kEndsAndStarts,  ///< [2B]: the same, then the first key that is not
  kKeys,           ///< [B, T]: 0 masks
  kPairs,          ///< [B, S, T]: 0 masks
  kSquare,         ///< [B, 1, M, M]: 0 masks; query i of the run is row P + i
};

/// B batch, N heads, S queries, L new keys, P keys of the past, T = P + L keys.
struct MicrosoftCore {
  const char* op = "";
  AttentionSpec core;              ///< over all keys
  DataType type = DataType::kF32;  ///< of the node's floats
  std::int64_t past = 0;           ///< P
  bool has_past = false;           ///< given, even if empty
  MicrosoftMask mask = MicrosoftMask::kNone;
  float filter = 0;          ///< mask_filter_value
  Dims bias_dims;            ///< of attention_bias; rank 0: none
  bool mask_is_sum = false;  ///< the run writes down every pair of query and key: mask, causal limit and bias
  bool sums_causal = false;  ///< the causal limit is part of that sum
};

/// Sizes as far as they are known.
struct MicrosoftSizes {
  std::int64_t num_heads = 1;
  Dim batch = 1, query_len = 1, past = 0, key_len = 1, head_dim = 1, value_head_dim = 1;  ///< key_len: with the past
};

/// Sizes into a core; what is not known is 1.
void set_microsoft_sizes(const MicrosoftSizes& sizes, MicrosoftCore* core);

/// Where a node has the inputs that both operators have, and what it calls its mask.
struct MicrosoftInputs {
  std::size_t mask, attention_bias;
  const char* mask_name;
};

/// Fills in all but sizes, type and past, which the caller has read. `scores`: the biased scores are an output. Throws
/// naming the operator, the input and both numbers.
void read_microsoft_masks(const InferContext& node, const MicrosoftInputs& at, const MicrosoftSizes& sizes, bool scores,
                          MicrosoftCore* core);

/// Throws unless the input may be of the node's float type.
void check_microsoft_type(const MicrosoftCore& core, const InferContext& node, std::size_t input, const char* what);

/// Throws unless both dims may be the same.
void check_microsoft_dims(const char* op, const char* what, const DimList& got, const DimList& expected);

/// The tensors of one run; those that are not asked for are absent. `bias` is [N·H + N·H + N·Hv].
struct MicrosoftCoreArgs {
  ConstTensorView query, key, value;     ///< [B, N, S, H], [B, N, L, H], [B, N, L, Hv], any strides
  ConstTensorView past_key, past_value;  ///< [B, N, P, H], [B, N, P, Hv]
  ConstTensorView bias, mask, attention_bias;
  TensorView out, present_key, present_value;  ///< [B, N, S, Hv], [B, N, T, H], [B, N, T, Hv]
  TensorView scores;                           ///< [B, N, S, T]
};

/// What a plan must know of the run besides the core.
struct MicrosoftCoreWants {
  DataType heads_type = DataType::kF32;  ///< of query, key and value: the node's, or f32 behind projections
  bool query_bias = false;
  bool key_bias = false;  ///< of value too
  bool present_key = false;
  bool present_value = false;
  std::string implementation = {};
};

class MicrosoftCorePlan {
 public:
  MicrosoftCorePlan(const MicrosoftCore& core, const MicrosoftCoreWants& wants);
  std::size_t workspace_bytes(int workers) const { return book_.bytes() + attention_.workspace_bytes(workers); }
  std::string explain() const;
  void run(const RunContext& context, MicrosoftCoreArgs args) const;

 private:
  void write_masks(const RunContext& context, const MicrosoftCoreArgs& args, AttentionArgs* core) const;

  MicrosoftCore a_;
  bool key_bias_;
  Attention attention_;
  WorkspaceLayout book_;
  WorkspaceSlot bias_, attention_bias_, mask_, key_mask_, query_, key_, value_, out_, scores_;
};

}  // namespace headway
