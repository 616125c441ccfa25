// What has been recorded under one worker id: by the thread that reported first, alone on its cache lines, and by all
// others under a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "headway/profiler.h"

namespace headway {

/// Whole cache lines for a vector, so that the buffers of two workers never meet on one.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::size_t kLine = 64;
  static_assert(alignof(T) <= kLine);

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = (n * sizeof(T) + kLine - 1) / kLine * kLine;
    return static_cast<T*>(::operator new(bytes, std::align_val_t(kLine)));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(kLine)); }
  friend bool operator==(CacheLineAllocator, CacheLineAllocator) { return true; }
};

/// What one writer at a time has recorded.
struct alignas(64) Recording {
  /// Totals of one zone. Found by address; the strings are copied, so that reading a profile needs no zone alive.
  struct Entry {
    const Zone* zone;
    std::string name;
    std::string category;
    std::uint64_t first_ticks;
    std::uint64_t busy_ticks = 0;
    std::int64_t count = 0;
    Work work;
  };
  /// One stretch for the trace.
  struct Event {
    std::uint64_t begin_ticks;
    std::uint64_t busy_ticks;
    Work work;
    std::uint32_t entry;
  };

  explicit Recording(std::size_t trace_events) : trace_capacity(trace_events) {
    entries.reserve(32);
    trace.reserve(trace_events);
  }

  void add(const Zone& zone, std::uint64_t begin_ticks, std::uint64_t busy_ticks, const Work& work, std::int64_t count);
  void clear() {
    entries.clear();
    trace.clear();
    dropped = 0;
  }

  std::vector<Entry, CacheLineAllocator<Entry>> entries;
  std::vector<Event, CacheLineAllocator<Event>> trace;
  std::size_t trace_capacity;
  std::int64_t dropped = 0;
};

/// Threads that report under one worker id: in one run after another it is mostly one thread, which needs no lock; runs
/// at the same time, and hosts' pools that change their threads, share the second recording.
struct Profiler::Worker {
  explicit Worker(std::size_t trace_events) : owned(trace_events), shared(trace_events) {
    owned.trace.resize(trace_events);  // touched now, so that no page fault lands in a measurement
    owned.trace.clear();
  }

  std::atomic<std::uint64_t> owner{0};  ///< number of the thread that reported first; 0: none yet
  Recording owned;                      ///< the owner's
  std::mutex mutex;
  Recording shared;  ///< all other threads', under `mutex`
  /// Reports by worker ids that this profiler was not made for; kept by worker 0.
  std::atomic<std::int64_t> strays{0};
};

}  // namespace headway
