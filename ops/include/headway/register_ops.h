// The operators of this library as graph operators. Inputs marked ? may be absent; all are f32 unless said otherwise.
//
//   MultiHeadAttention  query [B, Sq, E], key? [B, Skv, kdim], value? [B, Skv, vdim] (both absent: self attention),
//                       w_q, w_k, w_v, w_o, b_q?, b_k?, b_v?, b_o?, bias_k?, bias_v? (constants, packed at plan time),
//                       mask?, key_mask?, key_lengths? → out [B, Sq, E], scores?; one batch entry of key and value may
//                       stand for all
//   Attention           query [B, Hq, Sq, D], key [B, Hkv, Skv, D], value [B, Hkv, Skv, Dv], mask?, key_mask?,
//                       key_lengths?, offsets? → out [B, Hq, Sq, Dv], scores?; or of rank 3, without B. Batch entries
//                       and heads broadcast. query_axes, key_axes, value_axes, out_axes: axis i of [B, H, S, D] is axis
//                       axes[i] of the tensor
//     both in f32 or in bf16, weights and biases alike; scores are f32
//     attributes of both: scale, softcap, causal ("none", "top_left", "bottom_right", "offset"), window_left,
//     window_right, mask_polarity ("true_attends", "true_hides"), empty_row ("zero", "nan"), scores ("none", "scaled",
//     "softcapped", "biased", "probabilities", "mean_probabilities"), semantics (a profile of apply_semantics, with
//     is_causal; the other attributes override it), implementation. MultiHeadAttention only: num_heads, num_kv_heads,
//     head_dim, value_head_dim, add_zero_attention, self_attention (1: key and value are not read; default: absent),
//     weights ("out_in": y = x·Wᵀ, the default; "in_out": y = x·W). A mask known when a shape is planned is used by
//     value: one that hides nothing is dropped, a causal one becomes a causal limit.
//   com.microsoft.MultiHeadAttention, com.microsoft.Attention  as ONNX Runtime's CPU provider has them, with the packed
//     forms that it leaves out; f32, f16 and bf16. mask_filter_value is added to the scores of masked keys and hides
//     none of them. Weights and bias of Attention are constants; no rotary embedding, no shared buffers.
//   Operators of ONNX as opsets 13 to 25 define them, attributes by their ONNX names; where a list was an attribute
//   first and became an input, both are taken. Lists that decide a shape must follow from shapes or be constants.
//     elementwise   Abs Add And Cast CastLike Ceil Clip Cos Div Equal Erf Exp Floor Gelu Greater GreaterOrEqual IsInf
//                   IsNaN Less LessOrEqual Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign
//                   Sin Softplus Sqrt Sub Sum Swish Tan Tanh Where Xor, com.microsoft.Gelu, com.microsoft.QuickGelu
//                   (Softmax, and onnx.Attention: per_op_rounding = 1 rounds narrow types after every step)
//     shapes        Concat ConstantOfShape (value is input 1) Dropout (inference) Expand Flatten Gather GatherElements
//                   GatherND Identity If (condition, then, else) Pad Range Reshape (also by the attribute dims) Shape
//                   Size Slice Split Squeeze Tile Transpose Trilu Unsqueeze
//     reductions    CumSum Softmax and Reduce- L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare
//     norms         LayerNormalization RMSNormalization SimplifiedLayerNormalization (also as com.microsoft's),
//                   com.microsoft.SkipLayerNormalization and SkipSimplifiedLayerNormalization
//     products      Conv (1 to 3 axes) Einsum Gemm MatMul
//   Types f32, f64, f16, bf16, i8, u8, i32, i64, bool as ONNX allows them. f16 and bf16: in f32, rounded once. No input
//   is undefined: integers wrap, x / 0 is 0, NaN is cast to 0 and what does not fit to the nearest integer.
#pragma once

#include "headway/export.h"
#include "headway/operator.h"

namespace headway {

/// Adds every operator of ops/ to a registry.
HEADWAY_API void register_ops(Registry* registry);

}  // namespace headway
