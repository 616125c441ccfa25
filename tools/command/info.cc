// headway info: what this machine is and what it can do at best.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

#include "headway/attention.h"
#include "tools/command/commands.h"
#include "tools/command/execution.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/measure/machine.h"
#include "tools/measure/peak/peak.h"

namespace headway::tools {
namespace {

struct InfoOptions {
  std::string json_path;
  ExecutionOptions execution;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

int run(const InfoOptions& options) {
  // Larger than the last cache of most machines, so that memory is what is measured.
  constexpr std::size_t kBandwidthBytes = std::size_t{256} << 20;
  check_outputs({options.json_path});
  const Execution execution = start(options.execution);
  const Machine machine = describe_machine(execution.threads);
  print("cpu              {}\n", machine.cpu);
  print("logical cores    {}\n", machine.cores);
  print("threads          {}\n", machine.threads);
  print("simd target      {} (this CPU has {})\n", machine.simd, joined(machine.simd_available));
  print("oneDNN           {}\n", machine.onednn);
  print("Highway          {}\n", machine.highway);
  print("implementations  {}\n", joined(attention_implementations()));
  const double one = measure_fma_peak(Threads::serial());
  const double all = measure_fma_peak(execution.threads);
  const double bandwidth = measure_read_bandwidth(execution.threads, kBandwidthBytes / execution.threads.workers());
  print("f32 FMA peak     {:.1f} GFLOP/s on 1 thread, {:.1f} on {}\n", one * 1e-9, all * 1e-9, machine.threads);
  if (const double pairs = measure_bf16_peak(Threads::serial()); pairs > 0) {
    print("bf16 pairs peak  {:.1f} GFLOP/s on 1 thread, products of pairs added up in f32\n", pairs * 1e-9);
  }
  print("memory read      {:.1f} GB/s on {} thread{}\n", bandwidth * 1e-9, machine.threads,
        machine.threads == 1 ? "" : "s");
  nlohmann::json report = to_json(machine, all);
  report["fma_peak_gflops_one_thread"] = one * 1e-9;
  report["read_bandwidth_gbytes"] = bandwidth * 1e-9;
  write_report(options.json_path, report.dump(1) + "\n");
  return kExitGood;
}

}  // namespace

void add_info(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app->add_subcommand("info", "CPU, SIMD target, library versions, measured peaks");
  command->add_option("--json", options->json_path, "Write the same as JSON (- for the standard output)");
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
