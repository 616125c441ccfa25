// Presets and the checks of sizes. See layer_sizes.h.
#include "tools/measure/layer_sizes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "headway/error.h"
#include "runtime/base/check.h"

namespace headway::tools {
namespace {

struct Preset {
  const char* name;
  std::int64_t embed_dim;
  std::int64_t seq;
  bool causal;
  std::int64_t heads;
};

// Width, longest usual sequence and head count from each model's published configuration.
constexpr Preset kPresets[] = {
    {"bert-base", 768, 512, false, 12}, {"gpt2", 768, 1024, true, 12},     {"gpt3-175b", 12288, 2048, true, 96},
    {"t5-base", 768, 512, false, 12},   {"vit-base", 768, 197, false, 12}, {"whisper-small", 768, 1500, false, 12},
};
constexpr std::int64_t kSweptHeads[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128};

const Preset& find_preset(const std::string& name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return preset;
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
  }
  fail(ErrorCode::kInvalidArgument, "--preset is '", name, "', expected one of ", known);
}

std::vector<std::int64_t> default_heads(std::int64_t embed_dim) {
  std::vector<std::int64_t> out;
  for (const std::int64_t heads : kSweptHeads) {
    if (embed_dim % heads == 0) out.push_back(heads);
  }
  return out;
}

}  // namespace

void add_size_options(CLI::App* command, LayerSizes* sizes) {
  constexpr std::int64_t kLargest = 1 << 20;
  const CLI::Range range(std::int64_t{1}, kLargest);
  command->add_option("--preset", sizes->preset,
                      "Sizes of a model: bert-base, gpt2, gpt3-175b, t5-base, vit-base, whisper-small");
  command->add_option("--embed-dim", sizes->embed_dim, "Model width E")->check(range);
  command->add_option("--seq", sizes->seq, "Sequence length S")->check(range);
  command->add_option("--batch", sizes->batch, "Batch B")->check(range)->capture_default_str();
  command->add_flag("--causal", sizes->causal, "Query i sees keys 0 to i");
  command
      ->add_option_function<std::string>(
          "--type",
          [sizes](const std::string& word) { sizes->type = word == "bf16" ? DataType::kBF16 : DataType::kF32; },
          "Inputs, weights and output (default f32)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  command->add_option("--heads", sizes->heads, "Head count h, or several: 1,2,4,8; each must divide E")
      ->delimiter(',')
      ->check(range);
}

void complete_sizes(LayerSizes* sizes, bool one_head_count) {
  if (!sizes->preset.empty()) {
    const Preset& preset = find_preset(sizes->preset);
    if (sizes->embed_dim == 0) sizes->embed_dim = preset.embed_dim;
    if (sizes->seq == 0) sizes->seq = preset.seq;
    sizes->causal = sizes->causal || preset.causal;
    if (sizes->heads.empty() && one_head_count) sizes->heads = {preset.heads};
  }
  require(sizes->embed_dim > 0, "--embed-dim is missing, expected a width or a --preset");
  require(sizes->seq > 0, "--seq is missing, expected a length or a --preset");
  if (sizes->heads.empty() && !one_head_count) sizes->heads = default_heads(sizes->embed_dim);
  require(!one_head_count || sizes->heads.size() == 1, "--heads has ", sizes->heads.size(), " values, expected 1");
  for (const std::int64_t heads : sizes->heads) {
    require(sizes->embed_dim % heads == 0, "--heads ", heads, " does not divide --embed-dim ", sizes->embed_dim,
            ", the remainder is ", sizes->embed_dim % heads);
    require(std::count(sizes->heads.begin(), sizes->heads.end(), heads) == 1, "--heads has ", heads,
            " more than once, expected distinct values");
  }
}

std::string type_note(const LayerSizes& sizes) {
  return sizes.type == DataType::kBF16 ? " (bf16 products may pass it)" : "";
}

nlohmann::json to_json(const LayerSizes& sizes) {
  nlohmann::json out = {{"embed_dim", sizes.embed_dim},  {"seq", sizes.seq},
                        {"batch", sizes.batch},          {"causal", sizes.causal},
                        {"type", type_name(sizes.type)}, {"heads", sizes.heads}};
  if (!sizes.preset.empty()) out["preset"] = sizes.preset;
  return out;
}

}  // namespace headway::tools
