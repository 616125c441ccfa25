// Recording: totals a zone and trace events, per worker id; and merging the totals. Formats nothing (report.cc,
// trace.cc).
#include "headway/profiler.h"

#include <algorithm>
#include <new>

#include "headway/error.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/profile/profiler_worker.h"

namespace headway {

namespace {

/// A number of the calling thread, never used again by another.
std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> last{0};
  thread_local std::uint64_t number = 0;
  if (number == 0) number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

void Recording::add(const Zone& zone, std::uint64_t begin_ticks, std::uint64_t busy_ticks, const Work& work,
                    std::int64_t count) {
  // A run has a dozen zones; walking them costs less than any hash.
  std::size_t at = 0;
  while (at < entries.size() && entries[at].zone != &zone) ++at;
  if (at == entries.size()) {
    try {
      entries.push_back({&zone, zone.name, zone.category, begin_ticks, 0, 0, {}});
    } catch (const std::bad_alloc&) {
      ++dropped;
      return;
    }
  }
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

Profiler::Profiler(const Options& options) try : start_ticks_(0) {
  require(options.workers >= 1, "workers is ", options.workers, ", expected 1 or more");
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(options.trace_events_per_worker));
  }
  nanoseconds_per_tick();  // calibrate now, not inside somebody's measurement
  start_ticks_ = ticks_now();
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
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
  Worker& to = *workers_[worker];
  const std::uint64_t self = thread_number();
  std::uint64_t owner = to.owner.load(std::memory_order_relaxed);
  if (owner == 0 && to.owner.compare_exchange_strong(owner, self, std::memory_order_relaxed)) owner = self;
  if (owner == self) [[likely]] {
    to.owned.add(zone, begin_ticks, busy_ticks, work, count);
    return;
  }
  const std::lock_guard lock(to.mutex);
  to.shared.add(zone, begin_ticks, busy_ticks, work, count);
}

void Profiler::clear() {
  for (const auto& worker : workers_) {
    worker->owned.clear();
    worker->shared.clear();
    worker->owner = 0;
    worker->strays = 0;
  }
  start_ticks_ = ticks_now();
}

std::vector<Profiler::Row> Profiler::rows() const {
  struct Merged {
    const Zone* zone;
    std::uint64_t first_ticks;
    double worker_seconds;  ///< of the worker that is being added up
    Row row;
  };
  const double seconds_per_tick = nanoseconds_per_tick() * 1e-9;
  std::vector<Merged> merged;
  const auto merge = [&](const Recording::Entry& entry) {
    auto at = std::find_if(merged.begin(), merged.end(), [&](const Merged& m) { return m.zone == entry.zone; });
    if (at == merged.end()) {
      at = merged.insert(at, {entry.zone, entry.first_ticks, 0, {}});
      at->row.name = entry.name;
      at->row.category = entry.category;
    }
    const double seconds = static_cast<double>(entry.busy_ticks) * seconds_per_tick;
    at->first_ticks = std::min(at->first_ticks, entry.first_ticks);
    at->worker_seconds += seconds;
    at->row.count += entry.count;
    at->row.seconds += seconds;
    at->row.work += entry.work;
  };
  for (const auto& worker : workers_) {
    for (const Recording::Entry& entry : worker->owned.entries) merge(entry);
    for (const Recording::Entry& entry : worker->shared.entries) merge(entry);
    for (Merged& m : merged) {
      m.row.seconds_max = std::max(m.row.seconds_max, m.worker_seconds);
      m.worker_seconds = 0;
    }
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Merged& a, const Merged& b) { return a.first_ticks < b.first_ticks; });
  std::vector<Row> rows;
  for (Merged& m : merged) rows.push_back(std::move(m.row));
  return rows;
}

}  // namespace headway
