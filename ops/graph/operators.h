// The factories of the graph operators of this folder, one short file each, and what those files share.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>

#include "headway/operator.h"
#include "ops/graph/infer.h"
#include "runtime/base/check.h"

namespace headway {

std::unique_ptr<Operator> make_multi_head_attention_op();
std::unique_ptr<Operator> make_attention_op();
std::unique_ptr<Operator> make_onnx_attention_op();
std::unique_ptr<Operator> make_rotary_embedding_op();
std::unique_ptr<Operator> make_microsoft_rotary_embedding_op();
std::unique_ptr<Operator> make_microsoft_multi_head_attention_op();
std::unique_ptr<Operator> make_microsoft_attention_op();
std::unique_ptr<Operator> make_group_query_attention_op();
std::unique_ptr<Operator> make_linear_op();
std::unique_ptr<Operator> make_if_op();

// Operators that are entries of a table (table_op.h), a file of them at a time.
void add_unary_ops(Registry* registry);
void add_swish_ops(Registry* registry);
void add_binary_ops(Registry* registry);
void add_pow_op(Registry* registry);
void add_compare_ops(Registry* registry);
void add_where_op(Registry* registry);
void add_clip_op(Registry* registry);
void add_cast_ops(Registry* registry);
void add_reshape_ops(Registry* registry);
void add_transpose_op(Registry* registry);
void add_expand_ops(Registry* registry);
void add_concat_ops(Registry* registry);
void add_slice_op(Registry* registry);
void add_gather_ops(Registry* registry);
void add_shape_value_ops(Registry* registry);
void add_pad_op(Registry* registry);
void add_trilu_op(Registry* registry);
void add_softmax_op(Registry* registry);
void add_reduce_ops(Registry* registry);
void add_cumsum_op(Registry* registry);
void add_norm_ops(Registry* registry);
void add_skip_norm_ops(Registry* registry);
void add_matmul_op(Registry* registry);
void add_gemm_op(Registry* registry);
void add_einsum_op(Registry* registry);
void add_conv_op(Registry* registry);

/// The plan of this node at other shapes, when it is a `Plan` and no shape changes any of these inputs that are there:
/// what has been made of them may be shared. Null: none.
template <class Plan>
const Plan* sharing_plan(const NodeContext& node, std::initializer_list<std::size_t> inputs) {
  for (const std::size_t i : inputs) {
    if (i < node.inputs.size() && node.inputs[i].present && !node.is_fixed(i)) return nullptr;
  }
  return dynamic_cast<const Plan*>(node.sibling);
}

/// The input, or an absent view when the node has fewer inputs.
inline ConstTensorView optional_input(std::span<const ConstTensorView> inputs, std::size_t i) {
  return i < inputs.size() ? inputs[i] : ConstTensorView();
}

}  // namespace headway
