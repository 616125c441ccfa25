// The sweep as table, verdict, JSON and CSV. Measures nothing.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

#include "tools/measure/sweep.h"

namespace headway::tools {
namespace {

double giga(std::int64_t count) { return static_cast<double>(count) * 1e-9; }

bool matrix_work_identical(const Sweep& sweep) {
  return std::all_of(sweep.rows.begin(), sweep.rows.end(),
                     [&](const SweepRow& row) { return row.flops_executed == sweep.rows[0].flops_executed; });
}

// Exps per head, which must be the same number at every head count; 0 when they are not.
std::int64_t exps_per_head(const Sweep& sweep) {
  const std::int64_t each = sweep.rows[0].exps / sweep.rows[0].heads;
  const bool linear = std::all_of(sweep.rows.begin(), sweep.rows.end(),
                                  [&](const SweepRow& row) { return row.exps == each * row.heads; });
  return linear ? each : 0;
}

}  // namespace

bool outputs_right(const Sweep& sweep) {
  return std::all_of(sweep.rows.begin(), sweep.rows.end(),
                     [](const SweepRow& row) { return row.worst_error <= row.error_bound; });
}

std::string sweep_table(const Sweep& sweep) {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{}\n", text(sweep.machine));
  fmt::format_to(to, "E = {}, S = {}, B = {}{}{}; f32 FMA peak {:.1f} GFLOP/s{}; {} rounds\n", sweep.sizes.embed_dim,
                 sweep.sizes.seq, sweep.sizes.batch, sweep.sizes.causal ? ", causal" : "",
                 sweep.sizes.type == DataType::kBF16 ? ", bf16" : "", sweep.fma_peak_flops * 1e-9,
                 type_note(sweep.sizes), sweep.rounds);
  fmt::format_to(to, "GF/s and % of peak are of the nominal matrix flops; ± is half of (slowest - fastest) round\n");
  fmt::format_to(to, "{:>6} {:>6} {:>12} {:>14} {:>14} {:>10} {:>11} {:>6} {:>8} {:>7}  {}\n", "h", "D", "parameters",
                 "GFLOP nominal", "GFLOP executed", "Mexp", "median ms", "±", "GF/s", "% peak", "implementation");
  for (const SweepRow& row : sweep.rows) {
    fmt::format_to(to, "{:>6} {:>6} {:>12} {:>14.6f} {:>14.6f} {:>10.3f} {:>11.4f} {:>5.1f}% {:>8.1f} {:>7.1f}  {}{}\n",
                   row.heads, row.head_dim, row.parameters, giga(row.flops_nominal), giga(row.flops_executed),
                   static_cast<double>(row.exps) * 1e-6, row.seconds_median * 1e3,
                   50 * row.seconds_spread / row.seconds_median, row.flops_per_second() * 1e-9, 100 * row.peak_share,
                   row.implementation,
                   row.worst_error <= row.error_bound
                       ? ""
                       : fmt::format("  WRONG: error {:.2e}, bound {:.2e}", row.worst_error, row.error_bound));
  }
  return fmt::to_string(out);
}

std::string sweep_verdict(const Sweep& sweep) {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  const SweepRow& first = sweep.rows.front();
  const auto by_flops = [](const SweepRow& a, const SweepRow& b) { return a.flops_executed < b.flops_executed; };
  const auto [least, most] = std::minmax_element(sweep.rows.begin(), sweep.rows.end(), by_flops);
  if (matrix_work_identical(sweep)) {
    fmt::format_to(to, "work: constant is the matrix work, exactly {} executed flops at every h", most->flops_executed);
  } else {
    fmt::format_to(to,
                   "work: constant is the matrix work that the mathematics needs, {} flops at every h; executed, with "
                   "the padding of tiles, are {} at h = {} to {} at h = {} (x {:.4f})",
                   first.flops_nominal, least->flops_executed, least->heads, most->flops_executed, most->heads,
                   giga(most->flops_executed) / giga(least->flops_executed));
  }
  if (const std::int64_t each = exps_per_head(sweep)) {
    fmt::format_to(to, "; what grows is the softmax, exactly linear in h: {} exps per head\n", each);
  } else {
    const SweepRow& last = sweep.rows.back();
    fmt::format_to(to, "; exps grow from {} at h = {} to {} at h = {}, not exactly linear in h\n", first.exps,
                   first.heads, last.exps, last.heads);
  }
  const auto slowest = std::max_element(sweep.rows.begin(), sweep.rows.end(), [](const SweepRow& a, const SweepRow& b) {
    return a.seconds_median < b.seconds_median;
  });
  fmt::format_to(to, "time: the slowest, h = {}, takes {:.3f} of the time of h = {}\n", slowest->heads,
                 slowest->seconds_median / first.seconds_median, first.heads);
  return fmt::to_string(out);
}

nlohmann::json sweep_json(const Sweep& sweep) {
  nlohmann::json rows = nlohmann::json::array();
  double slowest = 0;
  for (const SweepRow& row : sweep.rows) {
    slowest = std::max(slowest, row.seconds_median);
    nlohmann::json seconds = nlohmann::json::array(), peaks = seconds, phases = seconds;
    for (const SweepRound& round : row.rounds) {
      seconds.push_back(round.seconds);
      peaks.push_back(round.peak_flops * 1e-9);
    }
    for (const SweepPhase& phase : row.phases) phases.push_back({{"name", phase.name}, {"seconds", phase.seconds}});
    rows.push_back({{"heads", row.heads},
                    {"head_dim", row.head_dim},
                    {"parameters", row.parameters},
                    {"matmul_flops_nominal", row.flops_nominal},
                    {"matmul_flops_executed", row.flops_executed},
                    {"exps", row.exps},
                    {"seconds_median", row.seconds_median},
                    {"seconds_spread", row.seconds_spread},
                    {"round_seconds", seconds},
                    {"round_peak_gflops", peaks},
                    {"phases", phases},
                    {"gflops", row.flops_per_second() * 1e-9},
                    {"peak_percent", 100 * row.peak_share},
                    {"implementation", row.implementation},
                    {"worst_error", row.worst_error},
                    {"error_bound", row.error_bound}});
  }
  nlohmann::json config = to_json(sweep.sizes);
  config["threads"] = sweep.machine.threads;
  config["rounds"] = sweep.rounds;
  return {{"version", sweep.version},
          {"date", sweep.date},
          {"machine", to_json(sweep.machine, sweep.fma_peak_flops)},
          {"config", config},
          {"rows", rows},
          {"verdict",
           {{"matmul_flops_executed_identical", matrix_work_identical(sweep)},
            {"exps_linear_in_heads", exps_per_head(sweep) != 0},
            {"slowest_over_first", slowest / sweep.rows.front().seconds_median},
            {"outputs_right", outputs_right(sweep)}}}};
}

std::string sweep_csv(const Sweep& sweep) {
  std::string out =
      "heads,head_dim,parameters,matmul_flops_nominal,matmul_flops_executed,exps,seconds_median,seconds_spread,gflops,"
      "peak_percent,implementation\n";
  for (const SweepRow& row : sweep.rows) {
    out += fmt::format("{},{},{},{},{},{},{:.9g},{:.9g},{:.6g},{:.6g},{}\n", row.heads, row.head_dim, row.parameters,
                       row.flops_nominal, row.flops_executed, row.exps, row.seconds_median, row.seconds_spread,
                       row.flops_per_second() * 1e-9, 100 * row.peak_share, row.implementation);
  }
  return out;
}

}  // namespace headway::tools
