// See attention_call.h.
#include "tools/command/attention_call.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

#include "runtime/base/check.h"

namespace headway::tools {
namespace {

constexpr std::array kInputs = {"query", "key", "value", "key_padding_mask", "attn_mask", "key_lengths"};

ConstTensorView input_or(const SafetensorsFile& file, const char* name, const ConstTensorView& otherwise) {
  return file.has(name) ? file.tensor(name) : otherwise;
}

AttentionVariant variant_of(const AttentionCallOptions& options, WeightsOutput weights) {
  require(options.window.empty() || options.window.size() == 2, "--window has ", options.window.size(),
          " numbers, expected left,right");
  AttentionVariant variant;
  variant.causal = options.causal;
  if (options.scale_option->count() > 0) variant.scale = options.scale;
  variant.softcap = options.softcap;
  if (!options.window.empty()) variant.window = {options.window[0], options.window[1]};
  variant.weights = weights;
  return variant;
}

/// Fills in what a call of either kind takes from the file of inputs.
template <class Call>
void take_inputs(const SafetensorsFile& input, Call* call) {
  call->query = input.tensor("query");
  call->key = input_or(input, "key", call->query);
  call->value = input_or(input, "value", call->query);
  call->attn_mask = input_or(input, "attn_mask", {});
  call->key_lengths = input_or(input, "key_lengths", {});
}

CallResult attend_layer(const AttentionCallOptions& options, const AttentionVariant& variant,
                        const SafetensorsFile& input, const Execution& execution) {
  const SafetensorsFile file = SafetensorsFile::open(options.weights_path);
  const std::string prefix = options.prefix.empty() ? find_layer_prefix(file) : options.prefix;
  refuse_unknown_weights(file, prefix);
  const LayerWeights weights = read_layer_weights(file, prefix);
  MhaCall call;
  require(options.heads > 0, "--heads is missing, expected the number of heads of the layer");
  call.num_heads = options.heads;
  call.num_kv_heads = options.kv_heads;
  call.batch_first = !options.sequence_first;
  call.add_zero_attn = options.zero_attention;
  call.variant = variant;
  take_inputs(input, &call);
  call.key_padding_mask = input_or(input, "key_padding_mask", {});
  return call_mha(weights, call, execution);
}

CallResult attend_core(const AttentionCallOptions& options, const AttentionVariant& variant,
                       const SafetensorsFile& input, const Execution& execution) {
  require(!input.has("key_padding_mask"),
          "key_padding_mask needs --weights; without a layer give attn_mask or key_lengths");
  require(!options.sequence_first && !options.zero_attention, "--sequence-first and --zero-attention need --weights");
  SdpaCall call;
  call.variant = variant;
  take_inputs(input, &call);
  const auto heads_of = [](const ConstTensorView& view) { return view.rank() >= 3 ? view.dims[view.rank() - 3] : 1; };
  require(options.heads == 0 || options.heads == heads_of(call.query), "--heads is ", options.heads, ", query has ",
          heads_of(call.query));
  require(options.kv_heads == 0 || options.kv_heads == heads_of(call.key), "--kv-heads is ", options.kv_heads,
          ", key has ", heads_of(call.key));
  return call_sdpa(call, execution);
}

}  // namespace

void check_input_names(const SafetensorsFile& file) {
  for (const std::string& name : file.names()) {
    const bool known = std::any_of(kInputs.begin(), kInputs.end(), [&](const char* input) { return name == input; });
    require(known, file.path(), " has a tensor named \"", name,
            "\", expected query, key, value, key_padding_mask, attn_mask, key_lengths");
  }
}

CallResult call_attention(const AttentionCallOptions& options, WeightsOutput weights, const SafetensorsFile& input,
                          const ExecutionOptions& execution) {
  const AttentionVariant variant = variant_of(options, weights);
  const Execution started = start(execution);
  return options.weights_path.empty() ? attend_core(options, variant, input, started)
                                      : attend_layer(options, variant, input, started);
}

CLI::Option* add_attention_call_options(CLI::App* command, AttentionCallOptions* options) {
  command->add_option("--weights", options->weights_path, "Weights by state-dict names; left out: the core alone");
  command->add_option("--prefix", options->prefix,
                      "Which layer of the weights file, such as encoder.layer.0.self_attn.");
  CLI::Option* input =
      command->add_option("--input", options->input_path, "query and, if given, key, value, masks, key_lengths");
  command->add_option("--heads", options->heads, "Heads of the layer")->check(CLI::PositiveNumber);
  command->add_option("--kv-heads", options->kv_heads, "Key and value heads (default: --heads)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--causal", options->causal, "Query i sees keys 0 to i");
  command->add_flag("--sequence-first", options->sequence_first, "Tensors are [S, B, E] (batch_first=False)");
  command->add_flag("--zero-attention", options->zero_attention, "Append a key and a value of zeros (add_zero_attn)");
  options->scale_option = command->add_option("--scale", options->scale, "Factor of the scores (default 1/sqrt(D))");
  command->add_option("--softcap", options->softcap, "c of c*tanh(s/c), before the masks")
      ->check(CLI::NonNegativeNumber);
  constexpr std::int64_t kWidest = std::int64_t{1} << 40;
  command->add_option("--window", options->window, "left,right keys around the query's own, both inclusive; -1 is open")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{-1}, kWidest));
  return input;
}

}  // namespace headway::tools
