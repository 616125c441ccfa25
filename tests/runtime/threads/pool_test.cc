// Our own pool: every task once whoever comes late, cannot be started, calls beside, nests or throws.
#include <gtest/gtest.h>
#include <omp.h>

#include <mutex>
#include <set>
#include <thread>

#include "runtime/base/check.h"
#include "runtime/threads/thread_pool.h"
#include "runtime/threads/usable_cpus.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/sanitizers.h"
#include "tests/runtime/threads/check_tasks.h"

namespace headway::testing {
namespace {

TEST(Pool, EveryTaskOnce) {
  for (int workers : {1, 2, 3, 8}) {
    const Threads threads = Threads::pool(workers);
    EXPECT_EQ(threads.workers(), workers);
    for (int round = 0; round < 20; ++round) {
      for (std::int64_t tasks : {0, 1, 2, 7, 1000}) check_tasks(threads, tasks);
    }
  }
}

TEST(Pool, MoreWorkersThanShares) {
  const Threads threads = Threads::pool(70);
  for (std::int64_t tasks : {3, 70, 1000}) check_tasks(threads, tasks);
}

TEST(Pool, UsesAllWorkers) {
  std::mutex mutex;
  std::set<int> workers;
  std::atomic<int> waiting{0};
  Threads::pool(3).parallel_for(3, [&](std::int64_t, int worker) {
    // Each holds its task until all have one, so that no worker can take two.
    ++waiting;
    while (waiting < 3) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    workers.insert(worker);
  });
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
}

TEST(Pool, WorkersBeginWithTheirShares) {
  const Threads threads = Threads::pool(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> begun{0};
    std::atomic<std::int64_t> first[3] = {-1, -1, -1};
    threads.parallel_for(12, [&](std::int64_t task, int worker) {
      std::int64_t none = -1;
      if (first[worker].compare_exchange_strong(none, task)) ++begun;
      // Nobody is ready to help another before all have begun.
      while (begun < 3) std::this_thread::yield();
    });
    for (int w = 0; w < 3; ++w) EXPECT_EQ(first[w], 4 * w) << "worker " << w;
  }
}

TEST(Pool, TheCallerIsWorkerZeroOnItsOwnThread) {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> faults{0};
  std::atomic<int> begun{0};
  Threads::pool(2).parallel_for(2, [&](std::int64_t, int worker) {
    if ((std::this_thread::get_id() == caller) != (worker == 0)) ++faults;
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(faults, 0);
}

TEST(Pool, TheFirstExceptionComesHome) {
  const Threads threads = Threads::pool(3);
  for (int round = 0; round < 20; ++round) {
    const auto work = [&] {
      threads.parallel_for(50, [](std::int64_t task, int) { require(task != 47, "task ", task, " is unlucky"); });
    };
    EXPECT_EQ(error_of(work), "task 47 is unlucky");
    check_tasks(threads, 20);
  }
}

TEST(Pool, InsideATaskCallsAreSerial) {
  const Threads outer = Threads::pool(3), other = Threads::pool(2);
  std::atomic<int> tasks{0};
  std::atomic<int> faults{0};
  outer.parallel_for(6, [&](std::int64_t, int) {
    const auto here = std::this_thread::get_id();
    for (const Threads& inner : {outer, other, Threads::openmp(2)}) {
      inner.parallel_for(5, [&](std::int64_t, int worker) {
        ++tasks;
        if (worker != 0 || std::this_thread::get_id() != here) ++faults;
      });
    }
  });
  EXPECT_EQ(tasks, 6 * 3 * 5);
  EXPECT_EQ(faults, 0);
}

TEST(Pool, InsideAParallelRegionCallsAreSerial) {
  if (kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  const Threads threads = Threads::pool(3);
  std::atomic<int> faults{0};
#pragma omp parallel num_threads(2)
  {
    const int caller = omp_get_thread_num();
    threads.parallel_for(10, [&](std::int64_t, int worker) {
      if (worker != 0 || omp_get_thread_num() != caller) ++faults;
    });
  }
  EXPECT_EQ(faults, 0);
  check_tasks(threads, 10);
}

TEST(Pool, ManyCallersAtOnce) {
  const Threads threads = Threads::pool(3);
  std::vector<std::thread> team;
  for (int caller = 0; caller < 6; ++caller) {
    team.emplace_back([copy = threads, caller] {
      for (int round = 0; round < 200; ++round) check_tasks(copy, (round * 7 + caller) % 40);
    });
  }
  for (std::thread& thread : team) thread.join();
}

TEST(Pool, ACallBesideALongOneDoesNotWait) {
  const Threads threads = Threads::pool(2);
  std::atomic<bool> begun{false}, end{false};
  std::thread other([&] {
    threads.parallel_for(2, [&](std::int64_t, int) {
      begun = true;
      while (!end) std::this_thread::yield();
    });
  });
  while (!begun) std::this_thread::yield();
  check_tasks(threads, 100);  // hangs if it waits
  end = true;
  other.join();
}

TEST(Pool, BusyNeighbours) {
  std::atomic<bool> end{false};
  std::vector<std::thread> neighbours;
  for (int i = 0; i < usable_cpus() + 1; ++i) {
    neighbours.emplace_back([&] {
      while (!end) {
      }
    });
  }
  for (int workers : {2, 8}) {
    const Threads threads = Threads::pool(workers);
    for (int round = 0; round < 20; ++round) check_tasks(threads, 50);
  }
  end = true;
  for (std::thread& thread : neighbours) thread.join();
}

TEST(Pool, ManyPools) {
  for (int round = 0; round < 100; ++round) {
    const Threads first = Threads::pool(1 + round % 4);
    const Threads second = Threads::pool(3);
    check_tasks(first, round);
    if (round % 2 == 0) check_tasks(second, 5);  // the others never start a thread
  }
}

TEST(Pool, ThreadsSleepBetweenCalls) {
  const Threads threads = Threads::pool(2);
  for (int round = 0; round < 5; ++round) {
    check_tasks(threads, 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far longer than they watch
  }
}

TEST(Pool, ACopyKeepsThePool) {
  Threads threads = Threads::serial();
  {
    const Threads made = Threads::pool(3);
    check_tasks(made, 9);
    threads = made;
  }
  check_tasks(threads, 9);
}

TEST(Pool, ZeroIsWhatTheProcessMayUse) {
  EXPECT_EQ(Threads::pool().workers(), usable_cpus());
  EXPECT_EQ(error_of([] { Threads::pool(-1); }), "workers is -1, expected 0 or more");
}

// Threads that the test holds back, as a busy machine does.
std::atomic<bool> gate_open{false};
struct Late {
  void* (*main)(void*);
  void* argument;
};
void* late_main(void* given) {
  const Late late = *static_cast<Late*>(given);
  delete static_cast<Late*>(given);
  while (!gate_open) std::this_thread::yield();
  return late.main(late.argument);
}
int create_late(pthread_t* thread, void* (*main)(void*), void* argument) {
  return pthread_create(thread, nullptr, late_main, new Late{main, argument});
}

struct Count {
  std::atomic<int> tasks{0};
  std::atomic<int> others{0};
  static void add(void* self, std::int64_t, int worker) {
    ++static_cast<Count*>(self)->tasks;
    if (worker != 0) ++static_cast<Count*>(self)->others;
  }
};

TEST(Pool, ACallWaitsForNoThreadThatHasNoTask) {
  gate_open = false;
  ThreadPool pool(4, create_late);
  Count count;
  for (int round = 0; round < 50; ++round) pool.run(30, Count::add, &count);  // hangs if it waits
  EXPECT_EQ(count.tasks, 50 * 30);
  EXPECT_EQ(count.others, 0);
  gate_open = true;
  // Those who come late find other rounds than the one they were called for.
  for (int round = 0; round < 500; ++round) pool.run(30, Count::add, &count);
  EXPECT_EQ(count.tasks, 550 * 30);
}

std::atomic<int> threads_left{0};
int create_few(pthread_t* thread, void* (*main)(void*), void* argument) {
  if (threads_left.fetch_sub(1) <= 0) return EAGAIN;
  return ThreadPool::create_thread(thread, main, argument);
}

TEST(Pool, ThreadsThatCannotBeMadeAreDoneWithout) {
  for (int few : {0, 1, 2}) {
    threads_left = few;
    ThreadPool pool(4, create_few);
    Count count;
    for (int round = 0; round < 20; ++round) pool.run(100, Count::add, &count);
    EXPECT_EQ(count.tasks, 2000);
    if (few == 0) {
      EXPECT_EQ(count.others, 0);
    }
    EXPECT_EQ(threads_left, -1) << "each call asked again";
    // Later there are threads again, and the pool finds out.
    threads_left = 100;
    for (int round = 0; round < 1000; ++round) pool.run(4, Count::add, &count);
    EXPECT_EQ(threads_left, 100 - (3 - few));
    EXPECT_EQ(count.tasks, 6000);
  }
}

}  // namespace
}  // namespace headway::testing
