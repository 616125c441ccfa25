// Where work runs: OpenMP, a pool of Headway's own, or the host's pool through a callback. Threads are a parameter of
// every run; nothing here is process-wide, and the host's OpenMP settings are never changed. Knows nothing of what the
// tasks do.
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
/// Called for two tasks or more; a single task runs on the calling thread as worker 0.
using HostParallelFor = void (*)(void* host, std::int64_t tasks, TaskFunction run, void* context);

class ThreadPool;  // runtime/threads/thread_pool.h

/// A number of workers and the means to run tasks on them. Copyable, immutable, usable from several threads at once.
///
/// Fork: a child has none of its parent's threads. serial() and pool() work in the child, whether or not the parent
/// used them before; a pool starts threads of the child's own at its first call. openmp() hangs in the child once the
/// parent has used it: libgomp waits for a team that is gone. Fork while no other thread is inside a call on an object
/// that the child goes on to use, and do not return from a task in the child of a fork inside it.
///
/// Threads that cannot be made: pool() runs with those that could be made, down to the calling thread alone, on the
/// same split and with the same bits. libgomp ends the process ("Thread creation failed").
class HEADWAY_API Threads {
 public:
  /// `workers` OpenMP threads; 0 takes OpenMP's own default. Inside an active parallel region of the host or a task of
  /// a pool(), tasks run serially on the calling thread as worker 0: we never nest.
  static Threads openmp(int workers = 0);
  /// A new pool of `workers`: the calling thread, and workers - 1 threads that start with the first call that has tasks
  /// for them and are joined when the last copy goes. 0 takes the CPUs that the process may use, by affinity and cgroup
  /// quota; affinities are left alone. A call returns when its tasks are done and waits for no thread that has none of
  /// them: what a thread that the system does not schedule would have done, others do. One call at a time has the
  /// threads; a call beside it, and one from inside a task or a parallel region, runs serially on its own thread as
  /// worker 0. Idle threads watch for work for some microseconds, then sleep.
  static Threads pool(int workers = 0);
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
  explicit Threads(std::shared_ptr<ThreadPool> pool);
  void run(std::int64_t tasks, TaskFunction fn, void* context) const;

  int workers_;
  HostParallelFor host_for_;
  void* host_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace headway
