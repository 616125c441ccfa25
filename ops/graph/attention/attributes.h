// The attributes that the Attention and MultiHeadAttention operators share, as AttentionRules. Sizes come from
// the inputs.
#pragma once

#include "headway/attention.h"
#include "headway/operator.h"

namespace headway {

/// Where a node has its optional inputs.
struct MaskInputs {
  std::size_t mask, key_mask, key_lengths, offsets;
};

/// Semantics first, then the single attributes over it; mask kinds from the types of the inputs. The scores output is
/// left out when the node has one output only.
AttentionRules attention_rules_of(const InferContext& node, const MaskInputs& at);

/// The attribute "implementation".
AttentionOptions attention_options_of(const NodeContext& node);

/// Dims of the scores output, of [B, H, Sq, Skv].
DimList scores_dims(ScoresOutput mode, const DimList& full);

/// Throws kInvalidArgument, in the words of `what`, unless a mask may broadcast to `full`, [B, H, Sq, Skv]. A last dim
/// of 1 broadcasts; one of n, 1 < n < Skv, hides the keys from n on, where the mask may be short.
void check_mask_dims(const std::string& what, const ValueInfo& mask, const DimList& full, bool may_be_short = true);
/// The attribute "short_mask": 0 where the mask stands for a sum with the scores, whose dims must broadcast.
bool takes_short_mask(const InferContext& node);

}  // namespace headway
