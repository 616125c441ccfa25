// Reading the configuration and the names of torch.
#include "tests/ops/multi_head_attention/torch_layer.h"

namespace headway::testing {
namespace {

ConstTensorView rank1(const ConstTensorView& view) { return view ? view.reshaped(Dims{view.count()}) : view; }

MultiHeadAttentionWeights make_weights(const TorchCase& tensors) {
  MultiHeadAttentionWeights weights;
  const ConstTensorView packed = tensors.tensor("in_proj_weight");
  const ConstTensorView bias = tensors.tensor("in_proj_bias");
  if (packed) {
    split_in_proj(packed, bias, &weights);
  } else {
    weights.query = tensors.tensor("q_proj_weight");
    weights.key = tensors.tensor("k_proj_weight");
    weights.value = tensors.tensor("v_proj_weight");
    if (bias) {
      const std::int64_t embed = bias.count() / 3;
      weights.query_bias = bias.sliced(0, 0, embed);
      weights.key_bias = bias.sliced(0, embed, 2 * embed);
      weights.value_bias = bias.sliced(0, 2 * embed, 3 * embed);
    }
  }
  weights.output = tensors.tensor("out_proj.weight");
  weights.output_bias = tensors.tensor("out_proj.bias");
  weights.bias_k = rank1(tensors.tensor("bias_k"));
  weights.bias_v = rank1(tensors.tensor("bias_v"));
  return weights;
}

MaskKind kind_of(const ConstTensorView& mask) {
  if (!mask) return MaskKind::kNone;
  return mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

}  // namespace

TorchLayer make_torch_layer(const nlohmann::json& config, const TorchCase& tensors) {
  TorchLayer layer;
  layer.weights = make_weights(tensors);
  const auto input = [&](const char* name, const ConstTensorView& otherwise) {
    return tensors.has(name) ? batch_first(config, tensors.tensor(name)) : otherwise;
  };
  MultiHeadAttentionArgs& args = layer.args;
  args.query = input("query", {});
  args.key = input("key", args.query);
  // The value may be the key's tensor or the query's.
  args.value = input("value", config.value("value", "") == "key" ? args.key : args.query);

  MultiHeadAttentionSpec& spec = layer.spec;
  spec.batch = args.query.dims[0];
  spec.query_len = args.query.dims[1];
  spec.key_len = args.key.dims[1];
  spec.embed_dim = args.query.dims[2];
  spec.kdim = args.key.dims[2];
  spec.vdim = args.value.dims[2];
  spec.num_heads = config["num_heads"].get<std::int64_t>();
  spec.add_zero_attention = config["add_zero_attn"].get<bool>();
  apply_semantics("torch_mha", false, &spec);  // a causal layer is given its mask

  args.key_mask = tensors.tensor("key_padding_mask");
  if (args.key_mask) args.key_mask = args.key_mask.reshaped(Dims{spec.batch, *spec.key_len});
  args.mask = tensors.tensor("attn_mask");
  if (args.mask.rank() == 3) {  // [B·H, Sq, Skv]
    args.mask = args.mask.reshaped(Dims{spec.batch, spec.num_heads, spec.query_len, *spec.key_len});
  }
  spec.key_mask = kind_of(args.key_mask);
  spec.mask = kind_of(args.mask);
  if (config["need_weights"].get<bool>()) {
    spec.empty_row = EmptyRow::kNan;  // what torch gives then
    spec.scores_output =
        config["average_attn_weights"].get<bool>() ? ScoresOutput::kMeanProbabilities : ScoresOutput::kProbabilities;
  }
  return layer;
}

Dims score_dims(const TorchLayer& layer) {
  const std::int64_t keys =
      *layer.spec.key_len + (layer.weights.bias_k ? 1 : 0) + (layer.spec.add_zero_attention ? 1 : 0);
  if (layer.spec.scores_output == ScoresOutput::kMeanProbabilities) {
    return {layer.spec.batch, layer.spec.query_len, keys};
  }
  return {layer.spec.batch, layer.spec.num_heads, layer.spec.query_len, keys};
}

}  // namespace headway::testing
