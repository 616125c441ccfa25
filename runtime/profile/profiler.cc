// Recording: totals a zone and trace events, per worker; and merging the totals. Formats nothing (report.cc, trace.cc).
#include "headway/profiler.h"

#include <algorithm>

#include "headway/error.h"
#include "runtime/base/check.h"
#include "runtime/profile/profiler_worker.h"

namespace headway {

void Profiler::Worker::add(const Zone& zone, std::uint64_t begin_ticks, std::uint64_t busy_ticks, const Work& work,
                           std::int64_t count) {
  // A run has a dozen zones; walking them costs less than any hash.
  std::size_t at = 0;
  while (at < entries.size() && entries[at].zone != &zone) ++at;
  if (at == entries.size()) entries.push_back({&zone, zone.name, zone.category, begin_ticks, 0, 0, {}});
  Entry& entry = entries[at];
  entry.first_ticks = std::min(entry.first_ticks, begin_ticks);
  entry.busy_ticks += busy_ticks;
  entry.count += count;
  entry.work += work;
  if (trace_capacity == 0) return;
  if (trace.size() == trace_capacity) {
    ++dropped;
  } else {
    trace.push_back({begin_ticks, busy_ticks, work, static_cast<std::uint32_t>(at)});
  }
}

Profiler::Profiler(const Options& options) : start_ticks_(0) {
  require(options.workers >= 1, "workers is ", options.workers, ", expected 1 or more");
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(options.trace_events_per_worker));
  }
  nanoseconds_per_tick();  // calibrate now, not inside somebody's measurement
  start_ticks_ = ticks_now();
}

Profiler::~Profiler() = default;

int Profiler::workers() const { return static_cast<int>(workers_.size()); }

void Profiler::add(int worker, const Zone& zone, std::uint64_t begin_ticks, std::uint64_t end_ticks, const Work& work,
                   std::int64_t count) {
  add_spread(worker, zone, begin_ticks, end_ticks, end_ticks - begin_ticks, work, count);
}

void Profiler::add_spread(int worker, const Zone& zone, std::uint64_t begin_ticks, std::uint64_t /*end_ticks*/,
                          std::uint64_t busy_ticks, const Work& work, std::int64_t count) {
  // Called from destructors inside parallel regions, so it must not throw.
  if (worker < 0 || worker >= workers()) [[unlikely]] {
    workers_[0]->strays.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  workers_[worker]->add(zone, begin_ticks, busy_ticks, work, count);
}

void Profiler::clear() {
  for (const auto& worker : workers_) {
    worker->entries.clear();
    worker->trace.clear();
    worker->dropped = 0;
    worker->strays = 0;
  }
  start_ticks_ = ticks_now();
}

std::vector<Profiler::Row> Profiler::rows() const {
  struct Merged {
    const Zone* zone;
    std::uint64_t first_ticks;
    Row row;
  };
  const double seconds_per_tick = nanoseconds_per_tick() * 1e-9;
  std::vector<Merged> merged;
  for (const auto& worker : workers_) {
    for (const Worker::Entry& entry : worker->entries) {
      auto at = std::find_if(merged.begin(), merged.end(), [&](const Merged& m) { return m.zone == entry.zone; });
      if (at == merged.end()) {
        at = merged.insert(at, {entry.zone, entry.first_ticks, {}});
        at->row.name = entry.name;
        at->row.category = entry.category;
      }
      const double seconds = static_cast<double>(entry.busy_ticks) * seconds_per_tick;
      at->first_ticks = std::min(at->first_ticks, entry.first_ticks);
      at->row.count += entry.count;
      at->row.seconds += seconds;
      at->row.seconds_max = std::max(at->row.seconds_max, seconds);
      at->row.work += entry.work;
    }
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Merged& a, const Merged& b) { return a.first_ticks < b.first_ticks; });
  std::vector<Row> rows;
  for (Merged& m : merged) rows.push_back(std::move(m.row));
  return rows;
}

}  // namespace headway
