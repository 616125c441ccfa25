// The machine that a figure was measured on: what it is called, what it has, what it can do at best.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headway/threads.h"

namespace headway::tools {

struct Machine {
  std::string cpu;
  int cores = 0;  ///< logical
  int threads = 0;
  std::string simd;
  std::vector<std::string> simd_available;
  std::string onednn;
  std::string highway;
};

/// How long the FMA peak is measured right before and after a timed run. Short, and on a core that has just worked:
/// clocks fall under load and rise again within milliseconds, so the peak must be taken at the clock of the run.
inline constexpr double kPeakSeconds = 0.005;

Machine describe_machine(const Threads& threads);
/// One line for the head of a report.
std::string text(const Machine& machine);
/// With `fma_peak_flops` as fma_peak_gflops.
nlohmann::json to_json(const Machine& machine, double fma_peak_flops);
/// The date of a report, "2026-01-31", in UTC.
std::string today();
/// Bytes of memory that the machine has; 0 when unknown.
std::size_t physical_memory_bytes();

}  // namespace headway::tools
