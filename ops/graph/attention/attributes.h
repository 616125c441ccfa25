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
AttentionRules attention_rules_of(const NodeContext& node, const MaskInputs& at);

/// The attribute "implementation".
AttentionOptions attention_options_of(const NodeContext& node);

/// Type and dims of the scores output of a completed spec.
TensorInfo scores_info(const AttentionSpec& spec);

}  // namespace headway
