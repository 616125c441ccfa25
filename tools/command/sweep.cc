// headway sweep: what the head count costs on this CPU.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/measure/sweep.h"

namespace headway::tools {
namespace {

struct SweepOptions {
  LayerSizes sizes;
  int rounds = 7;
  std::string json_path;
  std::string csv_path;
  ExecutionOptions execution;
};

int run(SweepOptions options) {
  check_outputs({options.json_path, options.csv_path});
  complete_sizes(&options.sizes, false);
  const Sweep sweep = measure_sweep(options.sizes, options.rounds, start(options.execution));
  // With a report on the standard output, nothing else may be there.
  std::FILE* const out = options.json_path == "-" || options.csv_path == "-" ? stderr : stdout;
  print(out, "{}{}", sweep_table(sweep), sweep_verdict(sweep));
  write_reports({{options.json_path, sweep_json(sweep).dump(1) + "\n"}, {options.csv_path, sweep_csv(sweep)}});
  if (outputs_right(sweep)) return kExitGood;
  print(stderr, "headway: sampled rows of the output differ from double by more than their bound\n");
  return kExitCheckFailed;
}

}  // namespace

void add_sweep(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app->add_subcommand("sweep", "Time one layer at several head counts");
  command->footer(
      "Rounds are interleaved across head counts; every timed run follows an untimed one, with the FMA peak measured\n"
      "right before and after it. Weights and input come from a fixed seed; sampled rows of the output are checked\n"
      "against double.");
  add_size_options(command, &options->sizes);
  command->add_option("--rounds", options->rounds, "Timed rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--json", options->json_path, "Write the sweep as JSON (- for the standard output)");
  command->add_option("--csv", options->csv_path, "Write the rows as CSV (- for the standard output)");
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
