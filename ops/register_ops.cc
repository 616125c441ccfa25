// The explicit list of graph operators.
#include "headway/register_ops.h"

#include "ops/operators.h"

namespace headway {

void register_ops(Registry* registry) {
  registry->add(make_multi_head_attention_op());
  registry->add(make_attention_op());
  registry->add(make_onnx_attention_op());
  registry->add(make_rotary_embedding_op());
  registry->add(make_microsoft_rotary_embedding_op());
  registry->add(make_matmul_op());
  registry->add(make_softmax_op());
  registry->add(make_add_op());
  registry->add(make_mul_op());
  registry->add(make_if_op());
  registry->add(make_reshape_op());
  registry->add(make_transpose_op());
}

}  // namespace headway
