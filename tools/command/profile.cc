// headway profile: where the time of one layer goes.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>

#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/measure/machine.h"
#include "tools/measure/peak/peak.h"
#include "tools/measure/random_layer.h"
#include "tools/measure/row_oracle.h"
#include "tools/measure/shortest_trace.h"
#include "tools/view/profile_page.h"

namespace headway::tools {
namespace {

struct ProfileOptions {
  LayerSizes sizes;
  int rounds = 10;
  std::string trace_path;
  std::string json_path;
  std::string html_path;
  ExecutionOptions execution;
};

struct LayerProfile {
  std::vector<Profiler::Row> totals;  ///< of all rounds
  std::vector<Profiler::Row> phases;  ///< of one run: totals over the rounds divided by their number
  double wall_seconds = 0;            ///< of one run, profiler on
  double phases_seconds = 0;          ///< summed over phases and workers
  double peak_flops = 0;
};

LayerProfile measure(PlannedLayer* plan, int rounds, const Execution& execution) {
  using Clock = std::chrono::steady_clock;
  Profiler profiler({execution.threads.workers(), 0});
  plan->run(&profiler);  // warm, and every zone known
  profiler.clear();
  LayerProfile out;
  const double before = measure_fma_peak(execution.threads, kPeakSeconds);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < rounds; ++i) plan->run(&profiler);
  out.wall_seconds = std::chrono::duration<double>(Clock::now() - begin).count() / rounds;
  out.peak_flops = (before + measure_fma_peak(execution.threads, kPeakSeconds)) / 2;
  out.totals = profiler.rows();
  for (Profiler::Row row : out.totals) {
    if (row.count == 0) continue;
    row.seconds /= rounds;
    row.seconds_max /= rounds;
    row.count /= rounds;
    row.work.flops_nominal /= rounds;
    row.work.flops_executed /= rounds;
    row.work.exps /= rounds;
    row.work.bytes /= rounds;
    out.phases_seconds += row.seconds;
    out.phases.push_back(std::move(row));
  }
  return out;
}

// Share of the peak that all workers together could do in the time that they spent in the phase.
double peak_percent(const Profiler::Row& row, double peak_flops, int workers) {
  return row.seconds > 0 ? 100 * static_cast<double>(row.work.flops_executed) * workers / (row.seconds * peak_flops)
                         : 0;
}

void print_table(std::FILE* to, const LayerProfile& profile, int workers) {
  print(to, "{:<12} {:>7} {:>11} {:>6} {:>14} {:>14} {:>10} {:>10} {:>8} {:>7}\n", "phase", "pieces", "worker ms",
        "time", "GFLOP nominal", "GFLOP executed", "Mexp", "MB", "GF/s", "% peak");
  for (const Profiler::Row& row : profile.phases) {
    print(to, "{:<12} {:>7} {:>11.4f} {:>5.1f}% {:>14.6f} {:>14.6f} {:>10.3f} {:>10.3f} {:>8.1f} {:>7.1f}\n", row.name,
          row.count, row.seconds * 1e3, 100 * row.seconds / profile.phases_seconds,
          static_cast<double>(row.work.flops_nominal) * 1e-9, static_cast<double>(row.work.flops_executed) * 1e-9,
          static_cast<double>(row.work.exps) * 1e-6, static_cast<double>(row.work.bytes) * 1e-6,
          row.seconds > 0 ? static_cast<double>(row.work.flops_executed) * workers / row.seconds * 1e-9 : 0,
          peak_percent(row, profile.peak_flops, workers));
  }
  const double available = profile.wall_seconds * workers;
  print(to, "phases sum to {:.4f} ms of worker time, {:.1f} % of the wall time {:.4f} ms x {} worker{}\n",
        profile.phases_seconds * 1e3, 100 * profile.phases_seconds / available, profile.wall_seconds * 1e3, workers,
        workers == 1 ? "" : "s");
}

nlohmann::json to_json(const LayerProfile& profile, int workers) {
  nlohmann::json phases = nlohmann::json::array();
  for (const Profiler::Row& row : profile.phases) {
    phases.push_back({{"name", row.name},
                      {"category", row.category},
                      {"count", row.count},
                      {"seconds", row.seconds},
                      {"seconds_max", row.seconds_max},
                      {"flops_nominal", row.work.flops_nominal},
                      {"flops_executed", row.work.flops_executed},
                      {"exps", row.work.exps},
                      {"bytes", row.work.bytes},
                      {"peak_percent", peak_percent(row, profile.peak_flops, workers)}});
  }
  return {{"wall_seconds", profile.wall_seconds},
          {"phases_seconds", profile.phases_seconds},
          {"phases_over_wall", profile.phases_seconds / (profile.wall_seconds * workers)},
          {"phases", phases}};
}

int run(ProfileOptions options) {
  check_outputs({options.json_path, options.trace_path, options.html_path});
  complete_sizes(&options.sizes, true);
  const Execution execution = start(options.execution);
  const int workers = execution.threads.workers();
  const RandomLayer random(options.sizes);
  PlannedLayer plan(options.sizes, options.sizes.heads[0], random, execution);
  const LayerProfile profile = measure(&plan, options.rounds, execution);
  const RowCheck check = check_output(options.sizes, options.sizes.heads[0], random, plan.output(), execution.threads);
  const Machine machine = describe_machine(execution.threads);

  std::FILE* const out =
      options.json_path == "-" || options.trace_path == "-" || options.html_path == "-" ? stderr : stdout;
  const std::string what =
      fmt::format("E = {}, S = {}, B = {}, h = {}{}{}", options.sizes.embed_dim, options.sizes.seq, options.sizes.batch,
                  options.sizes.heads[0], options.sizes.causal ? ", causal" : "",
                  options.sizes.type == DataType::kBF16 ? ", bf16" : "");
  print(out, "{}\n", text(machine));
  print(out, "{}; f32 FMA peak {:.1f} GFLOP/s{}; mean of {} runs\n{}\n", what, profile.peak_flops * 1e-9,
        type_note(options.sizes), options.rounds, plan.layer().explain());
  print_table(out, profile, workers);

  nlohmann::json report = to_json(profile, workers);
  report["machine"] = to_json(machine, profile.peak_flops);
  report["config"] = to_json(options.sizes);
  report["config"]["threads"] = workers;
  report["config"]["rounds"] = options.rounds;
  report["implementation"] = plan.layer().core().implementation();
  std::vector<Report> reports = {{options.json_path, report.dump(1) + "\n"}};
  if (!options.trace_path.empty() || !options.html_path.empty()) {
    const std::string trace =
        shortest_trace(workers, std::min(options.rounds, kTracedRuns), [&](Profiler* profiler) { plan.run(profiler); });
    reports.push_back({options.trace_path, trace});
    if (!options.html_path.empty()) {
      reports.push_back({options.html_path, profile_page({.what = what,
                                                          .workers = workers,
                                                          .runs = options.rounds,
                                                          .wall_seconds = profile.wall_seconds,
                                                          .rows = profile.totals,
                                                          .trace = trace,
                                                          .operators = {}},
                                                         execution.threads)});
    }
  }
  write_reports(reports);
  if (check.ok()) return kExitGood;
  print(stderr, "headway: sampled rows of the output differ from double by {:.2e}, bound {:.2e}\n", check.worst,
        check.bound);
  return kExitCheckFailed;
}

}  // namespace

void add_profile(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = app->add_subcommand("profile", "Say where the time of one layer goes");
  add_size_options(command, &options->sizes);
  command->add_option("--rounds", options->rounds, "Runs to average over")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--trace", options->trace_path, "Write one run as a Chrome trace, for Perfetto");
  command->add_option("--html", options->html_path,
                      "Write a page: time line, phases, roofline (- for the standard output)");
  command->add_option("--json", options->json_path, "Write the phases as JSON (- for the standard output)");
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
