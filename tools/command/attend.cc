// headway attend: one layer (or the core alone) on tensors from files; writes the result, or checks it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

#include "headway/safetensors.h"
#include "runtime/base/check.h"
#include "tools/command/attention_call.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/conformance/compare.h"

namespace headway::tools {
namespace {

struct AttendOptions {
  AttentionCallOptions call;
  std::string out_path;
  std::string check_path;
  bool no_weights = false;
  bool per_head = false;
  std::optional<double> output_bound;  ///< absolute; default below
  std::optional<double> weights_bound;
  ExecutionOptions execution;
};

WeightsOutput weights_of(const AttendOptions& options, const SafetensorsFile& input, const SafetensorsFile* expected) {
  if (options.no_weights) return WeightsOutput::kNone;
  // The rank of what is expected says which of the two forms is meant: a layer's inputs have no axis of heads.
  const int per_head_rank = input.tensor("query").rank() + (options.call.weights_path.empty() ? 0 : 1);
  const bool expects_heads =
      expected && expected->has("weights") && expected->tensor("weights").rank() == per_head_rank;
  return options.per_head || expects_heads ? WeightsOutput::kPerHead : WeightsOutput::kMean;
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
  check_outputs({options.out_path}, {options.call.weights_path, options.call.input_path, options.check_path});
  const SafetensorsFile input = SafetensorsFile::open(options.call.input_path);
  check_input_names(input);
  std::unique_ptr<SafetensorsFile> expected;
  if (!options.check_path.empty()) {
    expected = std::make_unique<SafetensorsFile>(SafetensorsFile::open(options.check_path));
    check_expected_names(*expected, !options.no_weights);
  }
  const CallResult result =
      call_attention(options.call, weights_of(options, input, expected.get()), input, options.execution);

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
  add_attention_call_options(command, &options->call)->required();
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
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
