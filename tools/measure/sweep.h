// The head sweep: what one layer costs at every head count. Measuring and reporting are apart.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/command/execution.h"
#include "tools/measure/layer_sizes.h"
#include "tools/measure/machine.h"

namespace headway::tools {

/// One timed round.
struct SweepRound {
  double seconds = 0;     ///< of one run
  double peak_flops = 0;  ///< the FMA peak around it, per second
};

/// Time in a zone of one run, summed over workers.
struct SweepPhase {
  std::string name;
  double seconds = 0;
};

struct SweepRow {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t parameters = 0;
  std::int64_t flops_nominal = 0;   ///< projections, scores and context by formula
  std::int64_t flops_executed = 0;  ///< the same as the loops counted them
  std::int64_t exps = 0;
  double seconds_median = 0;
  double seconds_spread = 0;  ///< largest minus smallest over the rounds
  double peak_share = 0;      ///< median over rounds of nominal flops per second over the peak around that round
  double worst_error = 0;     ///< of sampled rows against double
  double error_bound = 0;
  std::string implementation;
  std::vector<SweepRound> rounds;
  std::vector<SweepPhase> phases;  ///< of the profiled run whose time is the median of three

  double flops_per_second() const { return static_cast<double>(flops_nominal) / seconds_median; }
};

struct Sweep {
  LayerSizes sizes;
  int rounds = 0;
  Machine machine;
  std::string date, version;
  std::string name;           ///< for a legend: the file that it was read from
  double fma_peak_flops = 0;  ///< median of all measurements
  std::vector<SweepRow> rows;
};

/// Every round times each head count once, with the peak measured before and after it. Progress goes to the standard
/// error. Throws kInvalidArgument when the memory of the machine is not enough.
Sweep measure_sweep(const LayerSizes& sizes, int rounds, const Execution& execution);

std::string sweep_table(const Sweep& sweep);
/// Two lines: what stays constant and what grows; how flat the time is.
std::string sweep_verdict(const Sweep& sweep);
nlohmann::json sweep_json(const Sweep& sweep);
/// The sweep that sweep_json() wrote to this file, as far as reports and comparisons need it. Throws kIo where it
/// cannot be read, kInvalidArgument naming the file and what it lacks.
Sweep read_sweep(const std::string& path);
std::string sweep_csv(const Sweep& sweep);
bool outputs_right(const Sweep& sweep);

double median(std::vector<double> values);

}  // namespace headway::tools
