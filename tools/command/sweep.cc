// headway sweep: what the head count costs on this CPU, now or in a sweep that was saved.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

#include "headway/version.h"
#include "runtime/base/check.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/process.h"
#include "tools/command/report_file.h"
#include "tools/measure/sweep.h"
#include "tools/measure/sweep_compare.h"
#include "tools/measure/sweep_spot.h"
#include "tools/view/page.h"

namespace headway::tools {
namespace {

struct SweepOptions {
  LayerSizes sizes;
  int rounds = 7;
  std::string from_path;
  std::string compare_path;
  double tolerance_percent = 2;
  std::vector<std::string> with_paths;
  std::string json_path;
  std::string csv_path;
  std::string html_path;
  ExecutionOptions execution;
};

std::string html_of(const Sweep& sweep, const std::vector<Sweep>& others, const SweepComparison* comparison) {
  nlohmann::json sweeps = nlohmann::json::array();
  const auto add = [&](const Sweep& one) {
    nlohmann::json json = sweep_json(one);
    json["name"] = one.name;
    json["sweet_spot"] = to_json(sweet_spot(one));
    sweeps.push_back(std::move(json));
  };
  add(sweep);
  for (const Sweep& other : others) add(other);
  nlohmann::json data = {{"version", version()},
                         {"command", command_line()},
                         {"machine", text(sweep.machine)},
                         {"sentence", sweep_sentence(sweep)},
                         {"sweeps", sweeps}};
  if (comparison != nullptr) data["comparison"] = to_json(*comparison);
  PageParts parts;
  parts.file = "sweep.html";
  parts.title = "Head sweep: E = " + std::to_string(sweep.sizes.embed_dim) + ", S = " + std::to_string(sweep.sizes.seq);
  parts.json = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return page(parts);
}

int run(SweepOptions options) {
  std::vector<std::string> inputs = options.with_paths;
  inputs.push_back(options.from_path);
  inputs.push_back(options.compare_path);
  check_outputs({options.json_path, options.csv_path, options.html_path}, inputs);
  require(options.with_paths.empty() || !options.html_path.empty(), "--with is given without --html, expected both");
  // What is read is read before anything is measured.
  std::vector<Sweep> others;
  for (const std::string& path : options.with_paths) others.push_back(read_sweep(path));
  const bool compares = !options.compare_path.empty();
  const Sweep before = compares ? read_sweep(options.compare_path) : Sweep{};
  Sweep sweep;
  if (options.from_path.empty()) {
    if (compares && options.sizes.preset.empty() && options.sizes.embed_dim == 0) options.sizes = before.sizes;
    complete_sizes(&options.sizes, false);
    const Execution execution = start(options.execution);
    if (compares) require_comparable(before, options.sizes, execution.threads.workers());
    sweep = measure_sweep(options.sizes, options.rounds, execution);
  } else {
    sweep = read_sweep(options.from_path);
    if (compares) require_comparable(before, sweep.sizes, sweep.machine.threads);
  }
  // With a report on the standard output, nothing else may be there.
  const bool piped = options.json_path == "-" || options.csv_path == "-" || options.html_path == "-";
  std::FILE* const out = piped ? stderr : stdout;
  print(out, "{}{}", sweep_table(sweep), sweep_verdict(sweep));
  nlohmann::json json = sweep_json(sweep);
  SweepComparison comparison;
  if (compares) {
    comparison = compare_sweeps(before, sweep, options.tolerance_percent / 100);
    json["comparison"] = to_json(comparison);
    print(out, "\n{}: {}, {}\n{}", before.name, before.date, text(before.machine), comparison_table(comparison));
  }
  std::vector<Report> reports = {{options.json_path, json.dump(1) + "\n"}, {options.csv_path, sweep_csv(sweep)}};
  if (!options.html_path.empty()) {
    if (compares) others.insert(others.begin(), before);
    reports.push_back({options.html_path, html_of(sweep, others, compares ? &comparison : nullptr)});
  }
  write_reports(reports);
  if (!outputs_right(sweep)) {
    print(stderr, "headway: sampled rows of the output differ from double by more than their bound\n");
    return kExitCheckFailed;
  }
  return comparison.any_slower() ? kExitCheckFailed : kExitGood;
}

}  // namespace

void add_sweep(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app->add_subcommand("sweep", "Time one layer at several head counts");
  command->footer(
      "Rounds are interleaved across head counts; every timed run follows an untimed one, with the FMA peak measured\n"
      "right before and after it. Weights and input come from a fixed seed; sampled rows of the output are checked\n"
      "against double. With --compare the exit code is 1 when a head count became slower: by more than the tolerance,\n"
      "at equal FMA peak, in 99 % of 4000 resamples of the rounds of both sweeps.");
  add_size_options(command, &options->sizes);
  command->add_option("--rounds", options->rounds, "Timed rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--from", options->from_path, "Take a sweep that --json saved instead of measuring one");
  command->add_option("--compare", options->compare_path,
                      "Compare with a sweep that --json saved; its sizes are taken where none are given");
  command->add_option("--tolerance", options->tolerance_percent, "Percent that a head count may be slower")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->add_option("--html", options->html_path, "Write a page with the sweep (- for the standard output)");
  command->add_option("--with", options->with_paths, "Saved sweeps to lay over it on the page: F.json,G.json")
      ->delimiter(',');
  command->add_option("--json", options->json_path, "Write the sweep as JSON (- for the standard output)");
  command->add_option("--csv", options->csv_path, "Write the rows as CSV (- for the standard output)");
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
