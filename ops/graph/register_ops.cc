// The explicit list of graph operators.
#include "headway/register_ops.h"

#include "ops/graph/operators.h"

namespace headway {

void register_ops(Registry* registry) {
  registry->add(make_multi_head_attention_op());
  registry->add(make_attention_op());
  registry->add(make_onnx_attention_op());
  registry->add(make_rotary_embedding_op());
  registry->add(make_microsoft_rotary_embedding_op());
  registry->add(make_microsoft_multi_head_attention_op());
  registry->add(make_microsoft_attention_op());
  registry->add(make_group_query_attention_op());
  registry->add(make_linear_op());
  registry->add(make_if_op());
  add_unary_ops(registry);
  add_swish_ops(registry);
  add_binary_ops(registry);
  add_pow_op(registry);
  add_compare_ops(registry);
  add_where_op(registry);
  add_clip_op(registry);
  add_cast_ops(registry);
  add_reshape_ops(registry);
  add_transpose_op(registry);
  add_expand_ops(registry);
  add_concat_ops(registry);
  add_slice_op(registry);
  add_gather_ops(registry);
  add_shape_value_ops(registry);
  add_pad_op(registry);
  add_trilu_op(registry);
  add_softmax_op(registry);
  add_reduce_ops(registry);
  add_cumsum_op(registry);
  add_norm_ops(registry);
  add_skip_norm_ops(registry);
  add_matmul_op(registry);
  add_gemm_op(registry);
  add_einsum_op(registry);
  add_conv_op(registry);
}

}  // namespace headway
