// Both spellings of a config.json: rope_parameters as transformers 5 writes them, rope_theta and rope_scaling as
// before.
#include "tools/engine/config.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "headway/error.h"

namespace headway::engine {
namespace {

using Json = nlohmann::json;

/// The fields of a file, each read with a message that names both.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  bool has(const char* name) const { return json_.contains(name) && !json_.at(name).is_null(); }
  const std::string& path() const { return path_; }

  std::int64_t size(const char* name) const { return sized(name, json_.value(name, Json())); }
  std::int64_t size_or(const char* name, std::int64_t otherwise) const { return has(name) ? size(name) : otherwise; }

  double number(const char* name) const {
    const Json value = json_.value(name, Json());
    if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(name, "a finite number", value);
    return value.get<double>();
  }
  double number_or(const char* name, double otherwise) const { return has(name) ? number(name) : otherwise; }

  bool flag_or(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    if (!json_.at(name).is_boolean()) refuse(name, "true or false", json_.at(name));
    return json_.at(name).get<bool>();
  }
  std::string text_or(const char* name, const std::string& otherwise) const {
    if (!has(name)) return otherwise;
    if (!json_.at(name).is_string()) refuse(name, "a text", json_.at(name));
    return json_.at(name).get<std::string>();
  }
  Fields object(const char* name) const {
    if (!has(name) || !json_.at(name).is_object()) refuse(name, "an object", json_.value(name, Json()));
    return Fields(json_.at(name), path_);
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    if (!json_.at(name).is_array()) refuse(name, "a list", json_.at(name));
    for (const Json& one : json_.at(name)) {
      if (!one.is_string()) refuse(name, "a list of texts", one);
      result.push_back(one.get<std::string>());
    }
    return result;
  }
  [[noreturn]] void unsupported(const char* name, const std::string& value) const {
    detail::fail(ErrorCode::kUnsupported, path_, ": ", name, " is ", value, ", which is not computed");
  }

 private:
  std::int64_t sized(const char* name, const Json& value) const {
    if (!value.is_number_integer() || value.get<double>() < 1 || value.get<double>() > kMost) {
      refuse(name, "a whole number from 1 to 2^31", value);
    }
    return value.get<std::int64_t>();
  }
  [[noreturn]] void refuse(const char* name, const char* expected, const Json& value) const {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 40) + "…";
    detail::fail(ErrorCode::kInvalidArgument, path_, ": ", name, " is ", text, ", expected ", expected);
  }

  static constexpr double kMost = 2147483648.0;

  Json json_;
  std::string path_;
};

Json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) detail::fail(ErrorCode::kIo, path, ": cannot be read");
  const Json json = Json::parse(file, nullptr, false);
  detail::require(json.is_object(), path, ": is not a JSON object");
  return json;
}

FeedForward activation(const Fields& fields, const char* name, const std::string& otherwise) {
  const std::string text = fields.text_or(name, otherwise);
  if (text == "gelu") return FeedForward::kGelu;
  if (text == "gelu_new" || text == "gelu_pytorch_tanh") return FeedForward::kGeluTanh;
  if (text == "silu" || text == "swish") return FeedForward::kSilu;
  if (text == "relu") return FeedForward::kRelu;
  fields.unsupported(name, text);
}

/// `scaling` has rope_type, or nothing; `base` is what rope_theta is where it does not say.
RotarySpec rotary_of(const Fields& scaling, double base, const DecoderConfig& config, double share) {
  RotarySpec spec;
  spec.base = scaling.number_or("rope_theta", base);
  spec.positions = config.positions;
  spec.rotary_dim = static_cast<std::int64_t>(
      std::lround(scaling.number_or("partial_rotary_factor", share) * static_cast<double>(config.head_dim)));
  spec.rotary_dim -= spec.rotary_dim % 2;
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  spec.scaling.factor = scaling.number_or("factor", 1);
  spec.scaling.original_max_position =
      scaling.number_or("original_max_position_embeddings", static_cast<double>(config.positions));
  if (type == "linear") {
    spec.scaling.kind = RotaryScaling::Kind::kLinear;
  } else if (type == "llama3") {
    spec.scaling.kind = RotaryScaling::Kind::kLlama3;
    spec.scaling.low_freq_factor = scaling.number("low_freq_factor");
    spec.scaling.high_freq_factor = scaling.number("high_freq_factor");
  } else if (type == "yarn") {
    if (scaling.has("mscale") || scaling.has("mscale_all_dim")) scaling.unsupported("rope_scaling", "yarn with mscale");
    spec.scaling.kind = RotaryScaling::Kind::kYarn;
    spec.scaling.beta_fast = scaling.number_or("beta_fast", 32);
    spec.scaling.beta_slow = scaling.number_or("beta_slow", 1);
    if (scaling.has("attention_factor")) spec.scaling.attention_factor = scaling.number("attention_factor");
  } else if (type != "default") {
    scaling.unsupported("rope_type", type);
  }
  return spec;
}

/// One rotation for all layers, or one for those with a sliding window and one for the others.
void read_rotary(const Fields& fields, DecoderConfig* config) {
  const double base = fields.number_or("rope_theta", 10000), share = fields.number_or("partial_rotary_factor", 1);
  const Fields none(Json::object(), fields.path());
  if (fields.has("rope_parameters")) {
    const Fields rope = fields.object("rope_parameters");
    if (!rope.has("full_attention")) {
      config->rotary = {rotary_of(rope, base, *config, share)};
      return;
    }
    config->rotary = {rotary_of(rope.object("full_attention"), base, *config, share)};
    if (rope.has("sliding_attention")) {
      config->rotary.push_back(rotary_of(rope.object("sliding_attention"), base, *config, share));
    }
    return;
  }
  config->rotary = {rotary_of(fields.has("rope_scaling") ? fields.object("rope_scaling") : none, base, *config, share)};
  if (fields.has("rope_local_base_freq")) {
    config->rotary.push_back(rotary_of(none, fields.number("rope_local_base_freq"), *config, share));
  }
}

/// Which layers slide: by name, by a pattern whose last layer sees all, or all of them.
std::vector<bool> sliding_layers(const Fields& fields, std::int64_t count) {
  std::vector<bool> sliding(static_cast<std::size_t>(count), false);
  if (!fields.has("sliding_window")) return sliding;
  if (fields.has("layer_types")) {
    const std::vector<std::string> types = fields.texts("layer_types");
    detail::require(types.size() == sliding.size(), fields.path(), ": layer_types has ", types.size(),
                    " entries, expected num_hidden_layers = ", count);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention") fields.unsupported("layer_types", types[i]);
      sliding[i] = types[i] == "sliding_attention";
    }
    return sliding;
  }
  const std::string family = fields.text_or("model_type", "");
  if (family.starts_with("gemma")) {
    const std::int64_t pattern = fields.size_or("sliding_window_pattern", family == "gemma2" ? 2 : 6);
    for (std::int64_t i = 0; i < count; ++i) sliding[static_cast<std::size_t>(i)] = (i + 1) % pattern != 0;
  } else if (family == "mistral") {
    sliding.assign(sliding.size(), true);
  } else if (fields.flag_or("use_sliding_window", false)) {
    const std::int64_t first = fields.size_or("max_window_layers", count);
    for (std::int64_t i = first; i < count; ++i) sliding[static_cast<std::size_t>(i)] = true;
  }
  return sliding;
}

void read_gpt2(const Fields& fields, DecoderConfig* config) {
  config->gpt2 = true;
  config->width = fields.size("n_embd");
  config->ffn_width = fields.size_or("n_inner", 4 * config->width);
  config->num_heads = config->num_kv_heads = fields.size("n_head");
  detail::require(config->width % config->num_heads == 0, fields.path(), ": n_embd is ", config->width,
                  ", expected a multiple of n_head = ", config->num_heads);
  config->head_dim = config->width / config->num_heads;
  config->positions = fields.size("n_positions");
  config->norm_epsilon = static_cast<float>(fields.number_or("layer_norm_epsilon", 1e-5));
  config->activation = activation(fields, "activation_function", "gelu_new");
  if (!fields.flag_or("scale_attn_weights", true)) config->scale = 1.0f;
  if (fields.flag_or("scale_attn_by_inverse_layer_idx", false)) {
    fields.unsupported("scale_attn_by_inverse_layer_idx", "true");
  }
  config->layers.resize(static_cast<std::size_t>(fields.size("n_layer")));
}

void read_llama(const Fields& fields, DecoderConfig* config) {
  config->width = fields.size("hidden_size");
  config->ffn_width = fields.size("intermediate_size");
  config->num_heads = fields.size("num_attention_heads");
  config->num_kv_heads = fields.size_or("num_key_value_heads", config->num_heads);
  detail::require(config->num_heads % config->num_kv_heads == 0, fields.path(), ": num_attention_heads is ",
                  config->num_heads, ", expected a multiple of num_key_value_heads = ", config->num_kv_heads);
  config->head_dim = fields.size_or("head_dim", config->width / config->num_heads);
  config->positions = fields.size("max_position_embeddings");
  config->norm_epsilon = static_cast<float>(fields.number_or("rms_norm_eps", 1e-6));
  if (config->family.starts_with("gemma")) {
    config->norm_weight_offset = 1;
    config->embedding_scale = std::sqrt(static_cast<float>(config->width));
    config->scale = static_cast<float>(1 / std::sqrt(fields.number_or("query_pre_attn_scalar", 256)));
    config->softcap = static_cast<float>(fields.number_or("attn_logit_softcapping", 0));
    config->logit_softcap = static_cast<float>(fields.number_or("final_logit_softcapping", 0));
    config->activation = activation(fields, "hidden_activation", "gelu_pytorch_tanh");
    if (fields.flag_or("use_bidirectional_attention", false)) fields.unsupported("use_bidirectional_attention", "true");
  } else {
    config->activation = activation(fields, "hidden_act", "silu");
  }
  read_rotary(fields, config);
  const std::vector<bool> sliding = sliding_layers(fields, fields.size("num_hidden_layers"));
  for (const bool slides : sliding) {
    LayerConfig layer;
    if (slides) layer.window.left = fields.size("sliding_window") - 1;
    layer.rotary = slides && config->rotary.size() > 1 ? 1 : 0;
    config->layers.push_back(layer);
  }
}

}  // namespace

DecoderConfig read_config(const std::string& path) {
  const Fields fields(read_json(path), path);
  DecoderConfig config;
  config.family = fields.text_or("model_type", "");
  config.vocab = fields.size("vocab_size");
  if (config.family == "gpt2") {
    read_gpt2(fields, &config);
  } else if (config.family == "llama" || config.family == "mistral" || config.family == "qwen2" ||
             config.family == "qwen3" || config.family == "gemma2" || config.family == "gemma3_text") {
    read_llama(fields, &config);
  } else {
    fields.unsupported("model_type", config.family.empty() ? "absent" : config.family);
  }
  return config;
}

}  // namespace headway::engine
