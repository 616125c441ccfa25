// torch's packed input projection as the three projections it stands for.
#include "headway/multi_head_attention.h"
#include "runtime/base/check.h"

namespace headway {

void split_in_proj(const ConstTensorView& in_proj_weight, const ConstTensorView& in_proj_bias,
                   MultiHeadAttentionWeights* weights) {
  require(static_cast<bool>(in_proj_weight), "in_proj_weight is missing, expected [3E, E]");
  require(in_proj_weight.rank() == 2 && in_proj_weight.dims[0] == 3 * in_proj_weight.dims[1],
          "in_proj_weight has dims ", in_proj_weight.dims, ", expected [3E, E]");
  const std::int64_t e = in_proj_weight.dims[1];
  weights->query = in_proj_weight.sliced(0, 0, e);
  weights->key = in_proj_weight.sliced(0, e, 2 * e);
  weights->value = in_proj_weight.sliced(0, 2 * e, 3 * e);
  if (!in_proj_bias) return;
  require(in_proj_bias.dims == Dims{3 * e}, "in_proj_bias has dims ", in_proj_bias.dims, ", expected ", Dims{3 * e});
  weights->query_bias = in_proj_bias.sliced(0, 0, e);
  weights->key_bias = in_proj_bias.sliced(0, e, 2 * e);
  weights->value_bias = in_proj_bias.sliced(0, 2 * e, 3 * e);
}

}  // namespace headway
