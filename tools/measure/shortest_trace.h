// One run for a time line: the shortest of a few, so that what else the machine did is not taken for the run's own.
#pragma once

#include <chrono>
#include <string>

#include "headway/profiler.h"

namespace headway::tools {

inline constexpr int kTracedRuns = 5;  ///< enough for one that nothing came into

/// Chrome trace of the shortest of `runs` calls of `run(&profiler)`, at least one.
template <class Run>
std::string shortest_trace(int workers, int runs, Run run) {
  constexpr std::size_t kEventsPerWorker = std::size_t{1} << 16;
  using Clock = std::chrono::steady_clock;
  Profiler profiler({workers, kEventsPerWorker});
  std::string trace;
  Clock::duration shortest = Clock::duration::max();
  for (int i = 0; i < runs; ++i) {
    profiler.clear();
    const Clock::time_point begin = Clock::now();
    run(&profiler);
    const Clock::duration taken = Clock::now() - begin;
    if (taken >= shortest) continue;
    shortest = taken;
    trace = profiler.chrome_trace();
  }
  return trace;
}

}  // namespace headway::tools
