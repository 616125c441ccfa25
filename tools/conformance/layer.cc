// A folder with one layer of a real model: manifest, weights, input, expected. Run once with its padding mask and once
// with its lengths, which say the same.
#include <fmt/core.h>

#include "tools/conformance/conformance.h"

namespace headway::tools {

std::vector<Case> layer_cases(const std::string& folder, const nlohmann::json& manifest) {
  const SafetensorsFile weights_file = SafetensorsFile::open(folder + "/weights.safetensors");
  const SafetensorsFile input = SafetensorsFile::open(folder + "/input.safetensors");
  const SafetensorsFile expected = SafetensorsFile::open(folder + "/expected.safetensors");
  const auto weights =
      std::make_shared<const LayerWeights>(read_layer_weights(weights_file, find_layer_prefix(weights_file)));
  const auto input_or_absent = [&](const char* name) {
    return input.has(name) ? input.tensor(name) : ConstTensorView();
  };

  MhaCall call;
  call.num_heads = manifest.at("num_heads").get<std::int64_t>();
  call.num_kv_heads = manifest.value("num_kv_heads", std::int64_t{0});
  call.batch_first = manifest.value("batch_first", true);
  call.variant.causal = manifest.value("is_causal", false);
  call.query = input.tensor("query");
  call.key = input.has("key") ? input.tensor("key") : call.query;
  call.value = input.has("value") ? input.tensor("value") : call.key;
  call.attn_mask = input_or_absent("attn_mask");
  const ConstTensorView expected_weights = expected.has("weights") ? expected.tensor("weights") : ConstTensorView();
  if (expected_weights) {
    const bool per_head = expected_weights.rank() == call.query.rank() + 1;
    call.variant.weights = per_head ? WeightsOutput::kPerHead : WeightsOutput::kMean;
  }

  std::vector<Case> cases;
  const auto add = [&](const std::string& id, const std::string& masked_by, const MhaCall& variant) {
    const auto run = [=](const Execution& execution) {
      // The files are captured whole: views are good as long as they live.
      static_cast<void>(weights_file);
      static_cast<void>(input);
      return judge(call_mha(*weights, variant, execution), expected.tensor("output"), expected_weights);
    };
    cases.push_back({id,
                     fmt::format("layer {} E={} H={} q={} {}", manifest.value("layer", 0), weights->embed_dim,
                                 call.num_heads, text(call.query.dims), masked_by),
                     run});
  };
  MhaCall by_mask = call;
  by_mask.key_padding_mask = input_or_absent("key_padding_mask");
  add("000", by_mask.key_padding_mask ? "key_padding_mask" : "no padding", by_mask);
  MhaCall by_lengths = call;
  by_lengths.key_lengths = input_or_absent("key_lengths");
  if (by_lengths.key_lengths) add("001", "key_lengths", by_lengths);
  return cases;
}

}  // namespace headway::tools
