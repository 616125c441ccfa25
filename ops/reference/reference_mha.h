// Multi-head attention in double: projections, appended keys, heads, output projection, as the formula reads. The
// oracle of tests and tools; allocates what it needs and runs on the calling thread.
#pragma once

#include "headway/multi_head_attention.h"

namespace headway {

/// Spec, weights and tensors as MultiHeadAttention takes them, with two liberties: out and scores may be f64, and with
/// self_attention key and value may be absent. The arguments must be valid. Everything in between is double.
void reference_multi_head_attention(const MultiHeadAttentionSpec& spec, const MultiHeadAttentionWeights& weights,
                                    const MultiHeadAttentionArgs& args);

}  // namespace headway
