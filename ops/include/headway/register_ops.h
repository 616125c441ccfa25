// The operators of this library as graph operators. Inputs marked ? may be absent; all are f32 unless said otherwise.
//
//   MultiHeadAttention  query [B, Sq, E], key? [B, Skv, kdim], value? [B, Skv, vdim] (both absent: self attention),
//                       w_q, w_k, w_v, w_o, b_q?, b_k?, b_v?, b_o?, bias_k?, bias_v? (constants, packed at plan time),
//                       mask?, key_mask?, key_lengths? → out [B, Sq, E], scores?
//   Attention           query [B, Hq, Sq, D], key [B, Hkv, Skv, D], value [B, Hkv, Skv, Dv], mask?, key_mask?,
//                       key_lengths?, offsets? → out [B, Hq, Sq, Dv], scores?; or of rank 3, without B. Batch entries
//                       and heads broadcast. query_axes, key_axes, value_axes, out_axes: axis i of [B, H, S, D] is axis
//                       axes[i] of the tensor
//     attributes of both: scale, softcap, causal ("none", "top_left", "bottom_right", "offset"), window_left,
//     window_right, mask_polarity ("true_attends", "true_hides"), empty_row ("zero", "nan"), scores ("none", "scaled",
//     "softcapped", "biased", "probabilities", "mean_probabilities"), semantics (a profile of apply_semantics, with
//     is_causal; the other attributes override it), implementation. MultiHeadAttention only: num_heads, num_kv_heads,
//     head_dim, value_head_dim, add_zero_attention, self_attention (1: key and value are not read; default: absent),
//     weights ("out_in": y = x·Wᵀ, the default; "in_out": y = x·W). A mask known when a shape is planned is used by
//     value: one that hides nothing is dropped, a causal one becomes a causal limit.
//   MatMul              a, b → a·b, numpy's rules for any rank
//   Softmax             x → softmax over the attribute axis (default −1)
//   Add, Mul            a, b → with broadcasting, right-aligned
//   Reshape             x (any type) → the attribute dims: one −1 is inferred, 0 copies the input's dim
//   Transpose           x (any type) → the attribute perm (default: axes reversed)
#pragma once

#include "headway/operator.h"

namespace headway {

/// Adds every operator of ops/ to a registry: MultiHeadAttention, Attention, MatMul, Softmax, Add, Mul, Reshape,
/// Transpose.
void register_ops(Registry* registry);

}  // namespace headway
