// Where the time and the work go: zones with time, flops, exps and bytes per worker; table, JSON and Chrome trace.
// A null Profiler* means off and costs one predictable branch. Knows no operator by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headway/export.h"

namespace headway {

/// A kind of work. Declare one as a constant; its address is its identity.
struct Zone {
  const char* name;      ///< "scores", "softmax", …
  const char* category;  ///< "attention", "matmul", "node"
};

/// What was done, counted where it was done.
struct Work {
  std::int64_t flops_nominal = 0;   ///< what the mathematics needs
  std::int64_t flops_executed = 0;  ///< what the loops did: tiles skipped by masks do not count, padding does
  std::int64_t exps = 0;            ///< elements that went through exp
  std::int64_t bytes = 0;           ///< bytes of operands read and results written, once each

  Work& operator+=(const Work& other) {
    flops_nominal += other.flops_nominal;
    flops_executed += other.flops_executed;
    exps += other.exps;
    bytes += other.bytes;
    return *this;
  }
};

/// A cheap, constant-rate time stamp (TSC on x86-64, the virtual counter on AArch64, else steady_clock).
HEADWAY_API std::uint64_t ticks_now();
/// Nanoseconds of one tick, measured once per process against steady_clock.
HEADWAY_API double nanoseconds_per_tick();

/// Collects what zones took. Any number of threads and runs may report at once and nothing is lost, under equal worker
/// ids too: the thread that was first to report under an id does so without a lock, others with one. Reading (rows,
/// table, json, chrome_trace) and clear() need the runs over. A worker's memory is some hundred bytes per zone and 56
/// per trace event.
class HEADWAY_API Profiler {
 public:
  struct Options {
    int workers = 1;                          ///< worker ids that may report
    std::size_t trace_events_per_worker = 0;  ///< 0: totals only; beyond it events are dropped and counted.
                                              ///< Threads that share a worker id have as many again together
  };
  /// Throws kInvalidArgument unless there is at least one worker.
  explicit Profiler(const Options& options);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Worker ids that may report. Reports of others are dropped and counted.
  int workers() const;
  /// Adds a stretch [begin, end) of ticks to `zone` as seen by `worker`. `count` tells how many pieces it stands for.
  /// Touches only the worker's own memory while one thread reports as that worker; allocates nothing once the zone is
  /// known to it. Must not throw, so a report that there is no memory for is dropped and counted.
  void add(int worker, const Zone& zone, std::uint64_t begin_ticks, std::uint64_t end_ticks, const Work& work,
           std::int64_t count = 1);
  /// Adds time that is spread over [begin, end) in pieces too short to report one by one. Totals count `busy_ticks`;
  /// the trace shows one event from `begin_ticks` that lasts `busy_ticks`.
  void add_spread(int worker, const Zone& zone, std::uint64_t begin_ticks, std::uint64_t end_ticks,
                  std::uint64_t busy_ticks, const Work& work, std::int64_t count);
  /// Forgets what was recorded, keeps the memory.
  void clear();

  struct Row {
    std::string name;
    std::string category;
    std::int64_t count = 0;
    double seconds = 0;      ///< summed over workers
    double seconds_max = 0;  ///< of the busiest worker
    Work work;
  };
  /// Totals a zone, in order of first use.
  std::vector<Row> rows() const;
  /// Shares are of the whole of the category "node" for nodes, of everything else for the others, since nodes contain
  /// the finer zones. GF/s is over the time of the busiest worker.
  /// `peak_flops` (per second, all workers) adds a column with the share of it; 0 leaves the column out.
  std::string table(double peak_flops = 0) const;
  /// {"zones":[{"name","category","count","seconds","seconds_max","flops_nominal","flops_executed","exps","bytes"}],
  ///  "dropped":0}
  std::string json() const;
  /// Chrome trace event format, one track a worker; opens in Perfetto.
  std::string chrome_trace() const;

 private:
  struct HEADWAY_PRIVATE Worker;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t start_ticks_;
};

/// Reports the life of the object as one stretch of a zone. `profiler` may be null.
class HEADWAY_API ProfileScope {
 public:
  ProfileScope(Profiler* profiler, int worker, const Zone& zone)
      : profiler_(profiler), worker_(worker), zone_(zone), begin_(profiler ? ticks_now() : 0) {}
  ~ProfileScope() {
    if (profiler_) profiler_->add(worker_, zone_, begin_, ticks_now(), work_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
  void add(const Work& work) { work_ += work; }

 private:
  Profiler* profiler_;
  int worker_;
  const Zone& zone_;
  std::uint64_t begin_;
  Work work_;
};

}  // namespace headway
