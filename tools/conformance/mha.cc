// Cases of torch.nn.MultiheadAttention: one config to one call. Knows the layout of configs.json, not how it is run.
#include <fmt/core.h>

#include "tools/conformance/conformance.h"

namespace headway::tools {
namespace {

using nlohmann::json;

bool flag(const json& config, const char* name, bool otherwise = false) {
  return config.contains(name) && config[name].is_boolean() ? config[name].get<bool>() : otherwise;
}

std::string describe(const json& config, const MhaCall& call, const LayerWeights& weights) {
  std::string out = fmt::format("mha E={} H={}", weights.embed_dim, call.num_heads);
  if (weights.kdim != weights.embed_dim) out += fmt::format(" kdim={}", weights.kdim);
  if (weights.vdim != weights.embed_dim) out += fmt::format(" vdim={}", weights.vdim);
  out += fmt::format(" q={} k={}", text(call.query.dims), text(call.key.dims));
  if (!call.batch_first) out += " S-first";
  if (!weights.views.query_bias) out += " no-bias";
  if (weights.views.bias_k) out += " bias-kv";
  if (call.add_zero_attn) out += " zero-attn";
  if (call.key_padding_mask) out += fmt::format(" {}-padding", type_name(call.key_padding_mask.type));
  if (call.attn_mask)
    out += fmt::format(" {}-mask{}", type_name(call.attn_mask.type), call.attn_mask.rank() == 3 ? "-3D" : "");
  if (flag(config, "is_causal")) out += " causal";
  if (call.variant.weights == WeightsOutput::kMean) out += " weights";
  if (call.variant.weights == WeightsOutput::kPerHead) out += " weights-per-head";
  return out;
}

}  // namespace

Case mha_case(const CaseTensors& tensors, const json& config) {
  MhaCall call;
  call.num_heads = config.at("num_heads").get<std::int64_t>();
  call.batch_first = flag(config, "batch_first");
  call.add_zero_attn = flag(config, "add_zero_attn");
  call.query = tensors.required("query");
  call.key = tensors.required("key");
  call.value = tensors.required("value");
  call.key_padding_mask = tensors.optional("key_padding_mask");
  call.attn_mask = tensors.optional("attn_mask");
  // torch takes is_causal as a hint about attn_mask, which says the same and more; alone it means top-left.
  call.variant.causal = flag(config, "is_causal") && !call.attn_mask;
  const bool per_head = !flag(config, "average_attn_weights", true);
  if (flag(config, "need_weights") || tensors.has("weights")) {
    call.variant.weights = per_head ? WeightsOutput::kPerHead : WeightsOutput::kMean;
  }
  const auto weights = std::make_shared<const LayerWeights>(read_layer_weights(tensors.file(), tensors.prefix()));
  Case out;
  out.id = tensors.prefix().substr(0, tensors.prefix().size() - 1);
  out.description = describe(config, call, *weights);
  out.run = [tensors, call, weights](const Execution& execution) {
    return judge(call_mha(*weights, call, execution), tensors.required("output"), tensors.optional("weights"));
  };
  return out;
}

}  // namespace headway::tools
