// Threads of our own. A call returns when its tasks are done, not when every thread has arrived: a thread that the
// system has not scheduled must not delay it (OpenMP's barrier does: with a neighbour busy on one core, two threads
// took 8.0 ms for what one does in 0.6). Knows nothing of what the tasks do.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "headway/threads.h"
#include "runtime/threads/guarded_tasks.h"
#include "runtime/threads/task_shares.h"

namespace headway {

/// True on a thread that is working on tasks of any ThreadPool.
bool inside_pool_tasks();

/// The calling thread is worker 0, threads of the pool are the others. See Threads::pool for the contract.
///
/// Each call is a round with a number. The caller deals the tasks to shares, raises the signal of each worker that has
/// a share and works itself. A worker that comes late finds shares that are drained or belong to another round, and
/// waits again; all that it touches before it has claimed a task is memory of the pool. So nobody waits for it.
class ThreadPool {
 public:
  /// Starts a thread: 0, or an error as pthread_create returns it.
  using CreateThread = int (*)(pthread_t* thread, void* (*main)(void*), void* argument);
  static int create_thread(pthread_t* thread, void* (*main)(void*), void* argument);

  /// `workers` ≥ 1. Starts no thread yet.
  explicit ThreadPool(int workers, CreateThread create = create_thread);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return workers_; }
  void run(std::int64_t tasks, TaskFunction fn, void* context);

 private:
  struct alignas(64) Worker {
    ThreadPool* pool = nullptr;
    int id = 0;
    pthread_t thread{};
    /// The number of the last round that it was called for, and whether it sleeps.
    std::atomic<std::uint32_t> signal{0};
  };
  static void* thread_main(void* worker);

  bool take();
  void release();
  void start_threads(int last_worker);
  void run_round(std::int64_t base, std::int64_t tasks, GuardedTasks* guarded) noexcept;
  void work(std::uint32_t round, int worker) noexcept;
  void call(Worker* worker, std::uint32_t signal) noexcept;
  std::uint32_t next_round(Worker* self, std::uint32_t seen) const noexcept;
  void wait_for_tasks() noexcept;

  const int workers_;
  const CreateThread create_;
  const bool spins_;
  std::unique_ptr<Worker[]> team_;  ///< by worker id; 0 is the caller and has no thread
  /// Which process has the pool, by the number of forks before it, and whether a call is on.
  std::atomic<std::uint32_t> owner_;

  // Of the call that is on.
  int started_ = 0;      ///< workers 1 … started_ have a thread
  int retry_calls_ = 0;  ///< before a thread is tried again that could not be made
  std::uint32_t round_ = 0;
  std::int64_t base_ = 0;
  GuardedTasks* guarded_ = nullptr;
  TaskShares shares_;
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  ///< tasks, and whether the caller sleeps
};

}  // namespace headway
