// Completes and checks the specification, the weights and the arguments of the layer. Decides every default and every
// message; computes nothing.
#pragma once

#include "headway/multi_head_attention.h"

namespace headway {

/// The spec with its defaults filled in. Throws kInvalidArgument naming the field and both numbers.
MultiHeadAttentionSpec complete_spec(const MultiHeadAttentionSpec& spec);

/// What the core of a layer is: its rules at its sizes, with the appended keys (bias_k and bias_v where `bias_kv`, then
/// the zero key) behind the given ones.
AttentionSpec core_spec(const MultiHeadAttentionSpec& completed, bool bias_kv);

/// Throws kInvalidArgument naming the weight and both dims.
void check_weights(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& weights);

/// Everything about the arguments that the core does not check itself.
void check_args(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionArgs& args);

}  // namespace headway
