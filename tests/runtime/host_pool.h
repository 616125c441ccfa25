// A host's pool for tests: std::threads, a new set each time, tasks drawn from one counter.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "headway/threads.h"

namespace headway::testing {

struct HostPool {
  int workers = 1;
  std::atomic<int> calls{0};
  std::atomic<std::int64_t> tasks_started{0};

  explicit HostPool(int n) : workers(n) {}
  Threads threads() { return Threads::host(workers, run, this); }

 private:
  static void run(void* self, std::int64_t tasks, TaskFunction fn, void* context) {
    auto& pool = *static_cast<HostPool*>(self);
    ++pool.calls;
    std::atomic<std::int64_t> next{0};
    std::vector<std::thread> team;
    for (int worker = 0; worker < pool.workers; ++worker) {
      team.emplace_back([&, worker] {
        for (std::int64_t task; (task = next++) < tasks;) {
          ++pool.tasks_started;
          fn(context, task, worker);
        }
      });
    }
    for (std::thread& thread : team) thread.join();
  }
};

}  // namespace headway::testing
