// headway run: a model on tensors from files or on random ones; checked, timed, profiled, written.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <memory>

#include "headway/safetensors.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "tools/command/commands.h"
#include "tools/command/execution.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/conformance/compare_values.h"
#include "tools/measure/peak_memory.h"
#include "tools/measure/shortest_trace.h"
#include "tools/model/model.h"
#include "tools/model/model_inputs.h"
#include "tools/model/model_profile.h"
#include "tools/model/tensors.h"
#include "tools/view/profile_page.h"

namespace headway::tools {
namespace {

struct RunOptions {
  std::string model_path;
  ModelInputOptions inputs;
  std::string check_path;
  double tolerance = 1e-4;
  std::string out_path;
  std::string trace_path;
  bool profile = false;
  std::string html_path;
  bool unfused = false;
  int repeat = 1;
  ExecutionOptions execution;
};

class Runner {
 public:
  Runner(const Session& session, const ModelInputs& inputs, const Execution& execution)
      : session_(session), inputs_(inputs), execution_(execution) {
    std::vector<TensorInfo> infos;
    for (const ConstTensorView& view : inputs.views()) infos.push_back({view.type, view.dims, true});
    for (const TensorInfo& info : session.output_infos(infos)) {
      outputs_.emplace_back(info.type, info.dims);
      views_.push_back(outputs_.back().view());
    }
  }
  double seconds(Profiler* profiler) {
    const auto begin = std::chrono::steady_clock::now();
    session_.run(inputs_.views(), views_, execution_.threads, profiler);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::map<std::string, ConstTensorView> outputs() const {
    std::map<std::string, ConstTensorView> named;
    for (std::size_t i = 0; i < views_.size(); ++i) named.emplace(session_.graph().outputs()[i].name, views_[i]);
    return named;
  }

 private:
  const Session& session_;
  const ModelInputs& inputs_;
  const Execution& execution_;
  std::vector<Tensor> outputs_;
  std::vector<TensorView> views_;
};

/// Prints one line per tensor of the file; true when all are within the tolerance.
bool check(const std::map<std::string, ConstTensorView>& outputs, const RunOptions& options) {
  const SafetensorsFile expected = SafetensorsFile::open(options.check_path);
  require(!expected.names().empty(), printable(options.check_path), " has no tensors, expected outputs of the model");
  bool good = true;
  for (const std::string& name : expected.names()) {
    const auto output = outputs.find(name);
    require(output != outputs.end(), printable(options.check_path), " has ", expected.names().size(),
            " tensors, the model ", outputs.size(), " outputs: none of them is ", quoted(name));
    const ValueComparison comparison = compare_values("output " + quoted(name), output->second, expected.tensor(name));
    const bool within = comparison.relative() <= options.tolerance;
    print("check {}: largest error {:.2e}, {:.2e} of the largest entry {:.3g}, tolerance {:.0e}: {}\n", printable(name),
          comparison.worst, comparison.relative(), comparison.largest_expected, options.tolerance,
          within ? "ok" : "EXCEEDED");
    good = good && within;
  }
  return good;
}

void time_runs(Runner* runner, const RunOptions& options, const Session& session, const Execution& execution) {
  std::vector<double> seconds;
  for (int i = 0; i < options.repeat; ++i) seconds.push_back(runner->seconds(nullptr));
  const double first = seconds[0];
  std::sort(seconds.begin(), seconds.end());
  if (options.repeat > 1) {
    print("{} runs: median {:.4f} ms, least {:.4f} ms, first {:.4f} ms; {} thread{}\n", options.repeat,
          seconds[seconds.size() / 2] * 1e3, seconds[0] * 1e3, first * 1e3, execution.threads.workers(),
          execution.threads.workers() == 1 ? "" : "s");
  }
  ProfilePageParts page{.what = options.model_path,
                        .workers = execution.threads.workers(),
                        .runs = options.repeat,
                        .wall_seconds = 0,
                        .rows = {},
                        .trace = {},
                        .operators = {}};
  if (options.profile) {
    Profiler profiler({execution.threads.workers(), 0});
    for (int i = 0; i < options.repeat; ++i) page.wall_seconds += runner->seconds(&profiler) / options.repeat;
    print("{}", model_profile_text(session.graph(), profiler, options.repeat));
    page.rows = profiler.rows();
  }
  if (options.trace_path.empty() && options.html_path.empty()) return;
  page.trace = shortest_trace(execution.threads.workers(), std::min(options.repeat, kTracedRuns),
                              [&](Profiler* profiler) { runner->seconds(profiler); });
  std::vector<Report> reports = {{options.trace_path, page.trace}};
  if (!options.html_path.empty()) {
    page.operators = operators_by_row(session.graph());
    reports.push_back({options.html_path, profile_page(page, execution.threads)});
  }
  write_reports(reports);
}

std::vector<std::string> files_read(const RunOptions& options) {
  std::vector<std::string> files = {options.model_path, options.check_path};
  for (const std::string& input : options.inputs.files) {
    files.push_back(input);
    if (const std::size_t name = input.find('='); name != std::string::npos) files.push_back(input.substr(name + 1));
  }
  return files;
}

int run(const RunOptions& options) {
  check_outputs({options.out_path, options.trace_path, options.html_path}, files_read(options));
  require(options.html_path.empty() || options.profile, "--html is given without --profile, expected both");
  const Execution execution = start(options.execution);
  const Model model =
      load_model(options.model_path,
                 {.fused = !options.unfused, .session = {.memory_limit_bytes = options.inputs.memory_limit_bytes}});
  print("{}\n", text(model));
  if (!options.unfused) print("{}\n", attention_fused(model.fusion()));
  const ModelInputs inputs(model.session().graph(), options.inputs);
  for (const std::string& line : inputs.lines()) print("input {}\n", line);
  Runner runner(model.session(), inputs, execution);
  time_runs(&runner, options, model.session(), execution);
  const auto outputs = runner.outputs();
  for (const auto& [name, view] : outputs) {
    print("output {} {} {}\n", printable(name), headway::type_name(view.type), text(view.dims));
  }
  if (const double peak = peak_resident_bytes()) print("peak resident memory {:.1f} MB\n", peak * 1e-6);
  const bool good = options.check_path.empty() || check(outputs, options);
  if (!options.out_path.empty()) write_safetensors(options.out_path, outputs);
  return good ? kExitGood : kExitCheckFailed;
}

}  // namespace

void add_run(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app->add_subcommand("run", "Run an ONNX model");
  command->footer(
      "Inputs that no file gives are random: integers within the table they index, masks all 1, floats in -1 to 1.");
  command->add_option("model", options->model_path, "A file.onnx")->required();
  add_model_input_options(command, &options->inputs, false);
  command->add_option("--check", options->check_path,
                      "Compare outputs with this safetensors file; exit 1 beyond the tolerance");
  command->add_option("--tolerance", options->tolerance, "Largest error of --check, over the largest expected entry")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--out", options->out_path, "Write the outputs here, whole or not at all");
  command->add_flag("--profile", options->profile, "Say where the time goes, and attention's share");
  command->add_option("--html", options->html_path, "With --profile: write a page with time line, layers and roofline");
  command->add_option("--trace", options->trace_path, "Write one run as a Chrome trace, for Perfetto");
  command->add_flag("--unfused", options->unfused, "Run the nodes as the file has them");
  command->add_option("--repeat", options->repeat, "Runs to time")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_memory_option(command, &options->inputs.memory_limit_bytes);
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
