// How tasks reach workers: a plain loop, an OpenMP team, or the host's pool; and how the first exception gets back.
#include "headway/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "headway/error.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// One parallel_for on its way through several threads. No exception may leave a task: OpenMP would end the program,
/// and a host's pool may be written in C.
class GuardedTasks {
 public:
  GuardedTasks(TaskFunction fn, void* context, int workers) : fn_(fn), context_(context), workers_(workers) {}

  void run(std::int64_t task, int worker) noexcept {
    // Relaxed is enough: skipping a task late is harmless, and the join of the pool orders `error_`.
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      require(worker >= 0 && worker < workers_, "the pool ran a task on worker ", worker, ", expected less than ",
              workers_, " workers");
      fn_(context_, task, worker);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  TaskFunction fn_;
  void* context_;
  int workers_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

/// Tasks dealt out to workers: each begins with a share of neighbours, the same one every time, and then helps the
/// next worker with what is left of its. So a head's rows are found in the cache of the core that worked on them last,
/// in the operator before or in the call before.
class TaskShares {
 public:
  TaskShares(std::int64_t tasks, int workers) : count_(std::min<std::int64_t>(workers, kMaxShares)) {
    for (std::int64_t s = 0; s < count_; ++s) {
      shares_[s].next = tasks * s / count_;
      shares_[s].end = tasks * (s + 1) / count_;
    }
  }

  template <class Fn>
  void work(int worker, Fn fn) {
    for (std::int64_t other = 0; other < count_; ++other) {
      Share& share = shares_[(worker + other) % count_];
      const std::atomic_ref<std::int64_t> next(share.next);
      // A look first: counting on past the end would take the line from the worker whose share it is.
      while (next.load(std::memory_order_relaxed) < share.end) {
        const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
        if (task < share.end) fn(task);
      }
    }
  }

 private:
  static constexpr std::int64_t kMaxShares = 64;
  struct alignas(64) Share {
    std::int64_t next;
    std::int64_t end;
  };
  std::int64_t count_;
  Share shares_[kMaxShares];
};

void run_guarded(void* guarded, std::int64_t task, int worker) {
  static_cast<GuardedTasks*>(guarded)->run(task, worker);
}

}  // namespace

Threads Threads::openmp(int workers) {
  require(workers >= 0, "workers is ", workers, ", expected 0 or more");
  return Threads(workers == 0 ? omp_get_max_threads() : workers, nullptr, nullptr);
}

Threads Threads::host(int workers, HostParallelFor parallel_for, void* host_context) {
  require(workers >= 1, "workers is ", workers, ", expected 1 or more");
  require(parallel_for != nullptr, "parallel_for of the host's pool is null");
  return Threads(workers, parallel_for, host_context);
}

void Threads::run(std::int64_t tasks, TaskFunction fn, void* context) const {
  if (tasks <= 0) return;
  if (host_for_ != nullptr) {
    GuardedTasks guarded(fn, context, workers_);
    host_for_(host_, tasks, run_guarded, &guarded);
    guarded.rethrow();
    return;
  }
  // A plain loop, not a team of one: such a team is no active region, so that code inside it would start threads of
  // its own, and libgomp would dismiss its pool and build it again at the next wide region.
  if (workers_ == 1 || tasks == 1 || omp_in_parallel()) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(context, task, 0);
    return;
  }
  GuardedTasks guarded(fn, context, workers_);
  TaskShares shares(tasks, workers_);
  // Always all workers, even for fewer tasks: a team that keeps its size is reused, another size is built anew.
#pragma omp parallel num_threads(workers_)
  {
    const int worker = omp_get_thread_num();
    shares.work(worker, [&](std::int64_t task) { guarded.run(task, worker); });
  }
  guarded.rethrow();
}

}  // namespace headway
