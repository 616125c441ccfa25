// How tasks reach workers: a plain loop, an OpenMP team, our own pool, or the host's; the choice between them.
#include "headway/threads.h"

#include <omp.h>

#include <algorithm>
#include <new>

#include "headway/error.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/threads/guarded_tasks.h"
#include "runtime/threads/task_shares.h"
#include "runtime/threads/thread_pool.h"
#include "runtime/threads/usable_cpus.h"

namespace headway {
namespace {

void run_guarded(void* guarded, std::int64_t task, int worker) {
  static_cast<GuardedTasks*>(guarded)->run(task, worker);
}

}  // namespace

Threads Threads::openmp(int workers) {
  require(workers >= 0, "workers is ", workers, ", expected 0 or more");
  return Threads(workers == 0 ? omp_get_max_threads() : workers, nullptr, nullptr);
}

Threads::Threads(std::shared_ptr<ThreadPool> pool) : Threads(pool->workers(), nullptr, nullptr) {
  pool_ = std::move(pool);
}

Threads Threads::pool(int workers) {
  require(workers >= 0, "workers is ", workers, ", expected 0 or more");
  return translate_bad_alloc(
      [&] { return Threads(std::make_shared<ThreadPool>(workers == 0 ? usable_cpus() : workers)); });
}

Threads Threads::host(int workers, HostParallelFor parallel_for, void* host_context) {
  require(workers >= 1, "workers is ", workers, ", expected 1 or more");
  require(parallel_for != nullptr, "parallel_for of the host's pool is null");
  return Threads(workers, parallel_for, host_context);
}

void Threads::run(std::int64_t tasks, TaskFunction fn, void* context) const {
  if (tasks <= 0) return;
  if (host_for_ != nullptr && tasks > 1) {
    GuardedTasks guarded(fn, context, workers_);
    host_for_(host_, tasks, run_guarded, &guarded);
    guarded.rethrow();
    return;
  }
  // A plain loop, not a team of one: such a team is no active region, so that code inside it would start threads of
  // its own, and libgomp would dismiss its pool and build it again at the next wide region.
  if (workers_ == 1 || tasks == 1 || omp_in_parallel() || inside_pool_tasks()) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(context, task, 0);
    return;
  }
  if (pool_) {
    pool_->run(tasks, fn, context);
    return;
  }
  GuardedTasks guarded(fn, context, workers_);
  TaskShares shares(workers_);
  for (std::int64_t base = 0; base < tasks; base += TaskShares::kMaxTasks) {
    constexpr std::uint32_t kRound = 1;
    shares.deal(kRound, std::min(tasks - base, TaskShares::kMaxTasks));
    // Always all workers, even for fewer tasks: a team that keeps its size is reused, another size is built anew.
#pragma omp parallel num_threads(workers_)
    {
      const int worker = omp_get_thread_num();
      shares.work(
          kRound, worker, [&](std::int64_t task) { guarded.run(base + task, worker); }, [](int) {});
    }
  }
  guarded.rethrow();
}

}  // namespace headway
