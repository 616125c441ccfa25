// headway attend: one layer (or the core alone) on tensors from files; writes the result, or checks it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "headway/safetensors.h"
#include "runtime/base/check.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/conformance/compare.h"
#include "tools/conformance/torch_call.h"

namespace headway::tools {
namespace {

struct AttendOptions {
  std::string weights_path;
  std::string prefix;
  std::string input_path;
  std::string out_path;
  std::string check_path;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool causal = false;
  bool no_weights = false;
  bool per_head = false;
  bool sequence_first = false;
  bool zero_attention = false;
  float scale = 0;
  bool has_scale = false;
  float softcap = 0;
  std::vector<std::int64_t> window;
  std::optional<double> output_bound;  ///< absolute; default below
  std::optional<double> weights_bound;
  ExecutionOptions execution;
};

constexpr std::array kInputs = {"query", "key", "value", "key_padding_mask", "attn_mask", "key_lengths"};

ConstTensorView input_or(const SafetensorsFile& file, const char* name, const ConstTensorView& otherwise) {
  return file.has(name) ? file.tensor(name) : otherwise;
}

void check_input_names(const SafetensorsFile& file) {
  for (const std::string& name : file.names()) {
    const bool known = std::any_of(kInputs.begin(), kInputs.end(), [&](const char* input) { return name == input; });
    require(known, file.path(), " has a tensor named \"", name,
            "\", expected query, key, value, key_padding_mask, attn_mask, key_lengths");
  }
}

AttentionVariant variant_of(const AttendOptions& options, const SafetensorsFile& input,
                            const SafetensorsFile* expected) {
  AttentionVariant variant;
  variant.causal = options.causal;
  if (options.has_scale) variant.scale = options.scale;
  variant.softcap = options.softcap;
  if (!options.window.empty()) variant.window = {options.window[0], options.window[1]};
  if (options.no_weights) return variant;
  // The rank of what is expected says which of the two forms is meant: a layer's inputs have no axis of heads.
  const int per_head_rank = input.tensor("query").rank() + (options.weights_path.empty() ? 0 : 1);
  const bool expects_heads =
      expected && expected->has("weights") && expected->tensor("weights").rank() == per_head_rank;
  variant.weights = options.per_head || expects_heads ? WeightsOutput::kPerHead : WeightsOutput::kMean;
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

CallResult attend_layer(const AttendOptions& options, const AttentionVariant& variant, const SafetensorsFile& input) {
  const Execution execution = start(options.execution);
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

CallResult attend_core(const AttendOptions& options, const AttentionVariant& variant, const SafetensorsFile& input) {
  const Execution execution = start(options.execution);
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

// What --check lets pass unless it is told. In f32: several times what any layer tested is off. In bf16 the projected
// heads, the context and the output are rounded to 8 bits each, and an error of a score is a relative one of a weight:
// the output errs with the size of what it holds.
constexpr double kOutputBound = 1e-5;
constexpr double kWeightsBound = 1e-6;
constexpr double kBf16Bound = 1.0 / 64;

struct Bound {
  double value;
  std::string origin;  ///< empty, or what to say of it
};

Bound bound_of(const std::optional<double>& given, double in_f32, bool bf16, double size) {
  if (given) return {*given, ""};
  if (!bf16) return {in_f32, ""};
  if (size <= 1) return {kBf16Bound, " (2^-6, for bf16)"};
  return {kBf16Bound * size, fmt::format(" (2^-6 of the largest expected, {:.3g}, for bf16)", size)};
}

struct Verdict {
  bool good = true;
  std::string lines;  ///< one per tensor
};

// Prints nothing itself: a shape that does not fit is an error, and an error says one line and no more.
Verdict check(const SafetensorsFile& expected, const CallResult& result, const AttendOptions& options) {
  Verdict verdict;
  const bool bf16 = result.output.type() == DataType::kBF16;
  const auto check_tensor = [&](const Comparands& comparands, const std::optional<double>& given, double in_f32) {
    const Comparison comparison = compare(comparands);
    const Bound bound = bound_of(given, in_f32, bf16, comparison.largest_expected);
    const bool within = comparison.worst <= bound.value;
    const std::string empty = comparison.empty_rows_nan
                                  ? fmt::format(" ({} empty rows: NaN expected, 0 by rule)", comparison.empty_rows_nan)
                                  : "";
    verdict.lines += fmt::format("{}: max abs error {:.3e}, bound {:.3e}{}: {}{}\n", comparands.name, comparison.worst,
                                 bound.value, bound.origin, within ? "ok" : "EXCEEDED", empty);
    verdict.good = verdict.good && within;
  };
  for (const std::string& name : expected.names()) {
    if (name == "output") {
      check_tensor({"output", result.output.view(), expected.tensor(name), result.output_rows, result.empty_output},
                   options.output_bound, kOutputBound);
    } else {
      check_tensor({"weights", result.weights.view(), expected.tensor(name), result.weights_rows, {}},
                   options.weights_bound, kWeightsBound);
    }
  }
  return verdict;
}

void check_expected_names(const SafetensorsFile& expected, bool has_weights) {
  require(!expected.names().empty(), expected.path(), " has no tensors, expected output or weights");
  for (const std::string& name : expected.names()) {
    require(name == "output" || name == "weights", expected.path(), " has a tensor named \"", name,
            "\", expected output or weights");
    require(name == "output" || has_weights, expected.path(), " expects weights, which --no-weights leaves out");
  }
}

int run(const AttendOptions& options) {
  require(options.window.empty() || options.window.size() == 2, "--window has ", options.window.size(),
          " numbers, expected left,right");
  check_outputs({options.out_path}, {options.weights_path, options.input_path, options.check_path});
  const SafetensorsFile input = SafetensorsFile::open(options.input_path);
  check_input_names(input);
  std::unique_ptr<SafetensorsFile> expected;
  if (!options.check_path.empty()) {
    expected = std::make_unique<SafetensorsFile>(SafetensorsFile::open(options.check_path));
    check_expected_names(*expected, !options.no_weights);
  }
  const AttentionVariant variant = variant_of(options, input, expected.get());
  const CallResult result =
      options.weights_path.empty() ? attend_core(options, variant, input) : attend_layer(options, variant, input);

  const Verdict verdict = expected ? check(*expected, result, options) : Verdict();
  if (!options.out_path.empty() && verdict.good) {
    std::map<std::string, ConstTensorView> tensors = {{"output", result.output.view()}};
    if (result.has_weights) tensors.emplace("weights", result.weights.view());
    write_safetensors(options.out_path, tensors, {{"implementation", result.implementation}});
  }
  print("output {} {}", type_name(result.output.type()), text(result.output.dims()));
  if (result.has_weights) print(", weights {}", text(result.weights.dims()));
  print(", {} rows see no key, implementation {}\n", result.empty_rows, result.implementation);
  print("{}", verdict.lines);
  if (!verdict.good && !options.out_path.empty()) print("{} not written\n", options.out_path);
  return verdict.good ? kExitGood : kExitCheckFailed;
}

}  // namespace

void add_attend(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<AttendOptions>();
  CLI::App* command = app->add_subcommand("attend", "Run one attention layer on tensors from safetensors files");
  command->footer(
      "With --weights: torch.nn.MultiheadAttention on query [B, Sq, E] (key and value default to query),\n"
      "key_padding_mask [B, Skv] and attn_mask [Sq, Skv] or [B*H, Sq, Skv]; a bool mask hides where True, a float "
      "mask\n"
      "adds. Without: scaled_dot_product_attention on [B, H, S, D]; a bool attn_mask attends where True.\n"
      "key_lengths [B] hides the keys from there on. A row that sees no key gives 0.\n"
      "With bf16 weights (without a layer: a bf16 query) all is computed as bf16 and every input must be; the output\n"
      "is bf16 then, weights are f32. Other float types are computed as f32.");
  command->add_option("--weights", options->weights_path, "Weights by state-dict names; left out: the core alone");
  command->add_option("--prefix", options->prefix,
                      "Which layer of the weights file, such as encoder.layer.0.self_attn.");
  command->add_option("--input", options->input_path, "query and, if given, key, value, masks, key_lengths")
      ->required();
  command->add_option("--heads", options->heads, "Heads of the layer")->check(CLI::PositiveNumber);
  command->add_option("--kv-heads", options->kv_heads, "Key and value heads (default: --heads)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--causal", options->causal, "Query i sees keys 0 to i");
  command->add_flag("--sequence-first", options->sequence_first, "Tensors are [S, B, E] (batch_first=False)");
  command->add_flag("--zero-attention", options->zero_attention, "Append a key and a value of zeros (add_zero_attn)");
  CLI::Option* scale = command->add_option("--scale", options->scale, "Factor of the scores (default 1/sqrt(D))");
  command->add_option("--softcap", options->softcap, "c of c*tanh(s/c), before the masks")
      ->check(CLI::NonNegativeNumber);
  constexpr std::int64_t kWidest = std::int64_t{1} << 40;
  command->add_option("--window", options->window, "left,right keys around the query's own, both inclusive; -1 is open")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{-1}, kWidest));
  CLI::Option* none = command->add_flag("--no-weights", options->no_weights, "Output only, no attention weights");
  command->add_flag("--per-head", options->per_head, "Weights [B, H, Sq, Skv] instead of their mean over heads")
      ->excludes(none);
  command->add_option("--out", options->out_path, "Write output and weights here, whole or not at all");
  command->add_option("--check", options->check_path,
                      "Compare with the output and weights of this file; exit 1 beyond a bound");
  command
      ->add_option(
          "--output-bound", options->output_bound,
          "Largest error of output that --check lets pass (default 1e-5; in bf16 2^-6 of the largest expected)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--weights-bound", options->weights_bound,
                   "Largest error of weights that --check lets pass (default 1e-6; in bf16 2^-6)")
      ->check(CLI::NonNegativeNumber);
  add_execution_options(command, &options->execution);
  command->callback([options, chosen, scale] {
    options->has_scale = scale->count() > 0;
    *chosen = [options] { return run(*options); };
  });
}

}  // namespace headway::tools
