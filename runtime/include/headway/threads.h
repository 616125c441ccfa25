// Where work runs: OpenMP, or the host's own pool through a callback. Threads are a parameter of every run; nothing
// here is process-wide, and the host's OpenMP settings are never changed. Knows nothing of what the tasks do.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "headway/export.h"

namespace headway {

/// Runs task `task` (0 ≤ task < tasks) on worker `worker` (0 ≤ worker < workers()).
using TaskFunction = void (*)(void* context, std::int64_t task, int worker);

/// A host's pool: must call `run(context, task, worker)` once for each task in [0, tasks), may do so from several
/// threads at once provided that two calls at the same time never share a worker id, and returns when all are done.
using HostParallelFor = void (*)(void* host, std::int64_t tasks, TaskFunction run, void* context);

/// A number of workers and the means to run tasks on them. Copyable, immutable, usable from several threads at once.
class HEADWAY_API Threads {
 public:
  /// `workers` OpenMP threads; 0 takes OpenMP's own default. Inside an active parallel region of the host, tasks run
  /// serially on the calling thread as worker 0: we never nest.
  static Threads openmp(int workers = 0);
  /// Everything on the calling thread.
  static Threads serial() { return openmp(1); }
  /// The host's pool of `workers` threads. Throws kInvalidArgument unless workers ≥ 1.
  static Threads host(int workers, HostParallelFor parallel_for, void* host_context);

  int workers() const { return workers_; }

  /// Runs fn(task, worker) for each task in [0, tasks); returns when all are done. Which worker gets a task is not
  /// fixed, so a result must depend on the task alone. The first exception is thrown again on the calling thread.
  /// Allocates nothing.
  template <class Fn>
  void parallel_for(std::int64_t tasks, Fn&& fn) const {
    using Plain = std::remove_reference_t<Fn>;
    run(
        tasks, [](void* context, std::int64_t task, int worker) { (*static_cast<Plain*>(context))(task, worker); },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

 private:
  Threads(int workers, HostParallelFor host_for, void* host) : workers_(workers), host_for_(host_for), host_(host) {}
  void run(std::int64_t tasks, TaskFunction fn, void* context) const;

  int workers_;
  HostParallelFor host_for_;
  void* host_;
};

}  // namespace headway
