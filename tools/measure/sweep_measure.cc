// Timing the sweep: rounds interleaved across head counts, so that a drift of the machine touches all of them alike.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "headway/version.h"
#include "runtime/base/check.h"
#include "tools/command/output.h"
#include "tools/measure/peak/peak.h"
#include "tools/measure/random_layer.h"
#include "tools/measure/row_oracle.h"
#include "tools/measure/sweep.h"

namespace headway::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Runs shorter than this are repeated inside a round, so that the clock and one interruption weigh little.
constexpr double kRoundSeconds = 0.02;
constexpr int kMaxRepeats = 10'000;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Keeps one plan per head count alive, or makes each anew when all of them together would not fit in memory.
class Plans {
 public:
  Plans(const LayerSizes& sizes, const RandomLayer& random, const Execution& execution)
      : sizes_(sizes), random_(random), execution_(execution), kept_(sizes.heads.size()) {
    const double memory = static_cast<double>(physical_memory_bytes());
    keep_ = memory == 0 || estimated_bytes(sizes, sizes.heads.size()) < memory / 2;
  }

  PlannedLayer& get(std::size_t i) {
    if (!keep_) {
      for (auto& plan : kept_) plan.reset();
    }
    if (!kept_[i]) kept_[i] = std::make_unique<PlannedLayer>(sizes_, sizes_.heads[i], random_, execution_);
    return *kept_[i];
  }

 private:
  const LayerSizes& sizes_;
  const RandomLayer& random_;
  const Execution& execution_;
  std::vector<std::unique_ptr<PlannedLayer>> kept_;
  bool keep_ = true;
};

void require_memory(const LayerSizes& sizes) {
  const double needed = estimated_bytes(sizes, 1), memory = static_cast<double>(physical_memory_bytes());
  require(memory == 0 || needed < 0.9 * memory, "these sizes need about ", std::ceil(needed / 1e9),
          " GB of memory, this machine has ", std::floor(memory / 1e9));
}

// What does not depend on the clock: sizes, counted work, and whether the output is right.
SweepRow inspect(const LayerSizes& sizes, std::int64_t heads, PlannedLayer* plan, const RandomLayer& random,
                 const Execution& execution) {
  Profiler profiler({execution.threads.workers(), 0});
  plan->run(&profiler);
  const RowCheck check = check_output(sizes, heads, random, plan->output(), execution.threads);
  SweepRow row;
  row.heads = heads;
  row.head_dim = sizes.embed_dim / heads;
  row.parameters = plan->layer().parameters();
  row.flops_nominal = plan->nominal_flops();
  for (const Profiler::Row& zone : profiler.rows()) {
    row.flops_executed += zone.work.flops_executed;
    row.exps += zone.work.exps;
  }
  row.worst_error = check.worst;
  row.error_bound = check.bound;
  row.implementation = plan->layer().core().implementation();
  return row;
}

/// Where the time of one run goes: of three, the one whose time is the median.
std::vector<SweepPhase> profiled_phases(PlannedLayer* plan, const Threads& threads) {
  std::vector<std::pair<double, std::vector<SweepPhase>>> runs;
  for (int i = 0; i < 3; ++i) {
    Profiler profiler({threads.workers(), 0});
    const Clock::time_point begin = Clock::now();
    plan->run(&profiler);
    runs.push_back({seconds_since(begin), {}});
    for (const Profiler::Row& zone : profiler.rows()) runs.back().second.push_back({zone.name, zone.seconds});
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return runs[1].second;
}

SweepRound timed_run(PlannedLayer* plan, const Threads& threads) {
  const Clock::time_point warm = Clock::now();
  plan->run();
  const double once = std::max(seconds_since(warm), 1e-7);
  const int repeats = static_cast<int>(std::clamp(kRoundSeconds / once, 1.0, static_cast<double>(kMaxRepeats)));
  const double before = measure_fma_peak(threads, kPeakSeconds);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) plan->run();
  const double seconds = seconds_since(begin) / repeats;
  return {seconds, (before + measure_fma_peak(threads, kPeakSeconds)) / 2};
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Median, spread and share of the peak, of the rounds.
void summarise(SweepRow* row) {
  std::vector<double> seconds, shares;
  for (const SweepRound& round : row->rounds) {
    seconds.push_back(round.seconds);
    shares.push_back(static_cast<double>(row->flops_nominal) / round.seconds / round.peak_flops);
  }
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  row->seconds_spread = *most - *least;
  row->seconds_median = median(seconds);
  row->peak_share = median(shares);
}

Sweep measure_sweep(const LayerSizes& sizes, int rounds, const Execution& execution) {
  require_memory(sizes);
  Sweep sweep;
  sweep.sizes = sizes;
  sweep.rounds = rounds;
  sweep.machine = describe_machine(execution.threads);
  sweep.date = today();
  sweep.version = version();
  sweep.name = "this sweep";

  const RandomLayer random(sizes);
  Plans plans(sizes, random, execution);
  for (std::size_t i = 0; i < sizes.heads.size(); ++i) {
    print(stderr, "checking h = {}\n", sizes.heads[i]);
    sweep.rows.push_back(inspect(sizes, sizes.heads[i], &plans.get(i), random, execution));
  }

  std::vector<double> peaks;
  for (int round = 0; round < rounds; ++round) {
    print(stderr, "round {} of {}\n", round + 1, rounds);
    for (std::size_t i = 0; i < sizes.heads.size(); ++i) {
      sweep.rows[i].rounds.push_back(timed_run(&plans.get(i), execution.threads));
      peaks.push_back(sweep.rows[i].rounds.back().peak_flops);
    }
  }
  for (std::size_t i = 0; i < sizes.heads.size(); ++i) {
    sweep.rows[i].phases = profiled_phases(&plans.get(i), execution.threads);
    summarise(&sweep.rows[i]);
  }
  sweep.fma_peak_flops = median(peaks);
  return sweep;
}

}  // namespace headway::tools
