// One parallel_for on its way through several threads: how the first exception gets back. Knows no pool.
#pragma once

#include <atomic>
#include <exception>

#include "headway/threads.h"
#include "runtime/base/check.h"

namespace headway {

/// No exception may leave a task: OpenMP would end the program, a host's pool may be written in C, and a thread of our
/// own has nobody to catch it.
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

}  // namespace headway
