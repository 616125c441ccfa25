// The operators of this library as graph operators, and a table of them. The operators of ONNX are as opsets 13 to 25
// define them, attributes by their ONNX names; where a list was an attribute first and became an input, both are taken.
// Lists that decide a shape must follow from shapes or be constants. f16 and bf16: in f32, rounded once, but where
// per_op_rounding = 1 (Softmax, onnx.Attention) rounds after every step. No input is undefined: integers wrap, x / 0 is
// 0, NaN is cast to 0 and what does not fit to the nearest integer.
#pragma once

#include <span>

#include "headway/export.h"
#include "headway/operator.h"

namespace headway {

/// One operator. Lists are separated by commas, types by blanks; an input marked ? may be absent, and "x, ..." is one
/// or more.
///
///   MultiHeadAttention: query [B, Sq, E], key [B, Skv, kdim], value [B, Skv, vdim] (both absent: self attention),
///     weights and biases constant → out [B, Sq, E], scores?; one batch entry of key and value may stand for all;
///     only_batch, only_query_len, only_key_len: sizes beside which no other is taken
///   Attention: query [B, Hq, Sq, D], key [B, Hkv, Skv, D], value [B, Hkv, Skv, Dv] → out [B, Hq, Sq, Dv], scores?; or
///     of rank 3, without B; batch entries and heads broadcast unless broadcast is 0. query_axes, key_axes, value_axes,
///     out_axes: axis i of [B, H, S, D] is axis axes[i] of the tensor
///   Of both, a mask of fewer keys hides the others, unless short_mask is 0
///   Words: causal none, top_left, bottom_right, offset, last_key; mask_polarity true_attends, true_hides; empty_row
///     zero, nan; scores none, scaled, softcapped, biased, probabilities, mean_probabilities; semantics a profile of
///     apply_semantics(), with is_causal; weights out_in (y = x·Wᵀ) or in_out. Scores are f32. A mask known when a
///     shape is planned is used by value: one that hides nothing is dropped, a causal one becomes a causal limit.
///   com.microsoft's Attention and MultiHeadAttention: as ONNX Runtime's CPU provider has them, with the packed forms
///     that it leaves out. mask_filter_value is added to the scores of masked keys and hides none of them.
struct OperatorDoc {
  const char* name;        ///< in the registry
  const char* since;       ///< domain and first opset; "headway": of this library alone
  const char* inputs;      ///< in order
  const char* types;       ///< of the first input
  const char* attributes;  ///< that are read
};

/// Every operator of register_ops(), by domain and name.
HEADWAY_API std::span<const OperatorDoc> operator_table();

/// Adds every operator of ops/ to a registry.
HEADWAY_API void register_ops(Registry* registry);

}  // namespace headway
