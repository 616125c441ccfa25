// Completes and checks the specification, the weights and the arguments of the layer. Decides every default and every
// message; computes nothing.
#pragma once

#include "headway/multi_head_attention.h"

namespace headway {

/// The spec with every 0 that stands for a default replaced, `attention` filled in for the core. `bias_kv` tells
/// whether a learned key and value are appended. Throws kInvalidArgument naming the field and both numbers.
MultiHeadAttentionSpec complete_spec(const MultiHeadAttentionSpec& spec, bool bias_kv);

/// Keys appended to the given ones: bias_k, then the zero key.
std::int64_t appended_keys(const MultiHeadAttentionSpec& completed);

/// Throws kInvalidArgument naming the weight and both dims.
void check_weights(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& weights);

/// Everything about the arguments that the core does not check itself.
void check_args(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionArgs& args);

}  // namespace headway
