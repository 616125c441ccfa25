// parallel_for: every task once, on a worker of its own, serially where nesting threatens, exceptions brought home.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

#include "headway/error.h"
#include "headway/threads.h"
#include "runtime/base/check.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/host_pool.h"
#include "tests/runtime/sanitizers.h"
#include "tests/runtime/threads/check_tasks.h"

namespace headway {
namespace {

using testing::check_tasks;
using testing::error_of;
using testing::expect_contains;
using testing::HostPool;

TEST(Threads, EveryTaskOnceOpenMp) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  for (int workers : {1, 2, 3, 8}) {
    for (std::int64_t tasks : {0, 1, 2, 7, 1000}) check_tasks(Threads::openmp(workers), tasks);
  }
}

TEST(Threads, EveryTaskOnceHost) {
  for (int workers : {1, 2, 5}) {
    HostPool pool(workers);
    for (std::int64_t tasks : {0, 1, 2, 7, 1000}) check_tasks(pool.threads(), tasks);
    EXPECT_EQ(pool.calls, 3) << "no tasks, or one, is no call";
  }
}

TEST(Threads, OneTaskStaysWithTheCallerOfAHostsPool) {
  HostPool pool(3);
  const auto caller = std::this_thread::get_id();
  int worker_seen = -1;
  pool.threads().parallel_for(1, [&](std::int64_t, int worker) {
    worker_seen = worker;
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(worker_seen, 0);
  EXPECT_EQ(pool.calls, 0);
}

TEST(Threads, OpenMpUsesAllWorkers) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  std::mutex mutex;
  std::set<int> workers;
  std::atomic<int> waiting{0};
  Threads::openmp(3).parallel_for(3, [&](std::int64_t, int worker) {
    // Each holds its task until all have one, so that no worker can take two.
    ++waiting;
    while (waiting < 3) {
    }
    const std::lock_guard lock(mutex);
    workers.insert(worker);
  });
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
}

TEST(Threads, OpenMpWorkersBeginWithTheirShares) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  std::atomic<int> begun{0};
  std::atomic<std::int64_t> first[3] = {-1, -1, -1};
  Threads::openmp(3).parallel_for(12, [&](std::int64_t task, int worker) {
    std::int64_t none = -1;
    if (first[worker].compare_exchange_strong(none, task)) ++begun;
    // Nobody is ready to help another before all have begun.
    while (begun < 3) {
    }
  });
  for (int w = 0; w < 3; ++w) EXPECT_EQ(first[w], 4 * w) << "worker " << w;
}

TEST(Threads, OpenMpSharesAreFewerThanManyWorkers) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  for (std::int64_t tasks : {3, 70, 1000}) check_tasks(Threads::openmp(70), tasks);
}

TEST(Threads, ZeroIsOpenMpsDefault) {
  EXPECT_EQ(Threads::openmp().workers(), omp_get_max_threads());
  EXPECT_EQ(Threads::openmp(5).workers(), 5);
  EXPECT_EQ(Threads::serial().workers(), 1);
}

TEST(Threads, OpenMpSettingsAreLeftAlone) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  const int before = omp_get_max_threads();
  check_tasks(Threads::openmp(before + 3), 100);
  check_tasks(Threads::openmp(1), 100);
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(Threads, OneWorkerOrOneTaskOpensNoRegion) {
  int level = -1;
  Threads::serial().parallel_for(5, [&](std::int64_t, int) { level = std::max(level, omp_get_level()); });
  EXPECT_EQ(level, 0);
  Threads::openmp(4).parallel_for(1, [&](std::int64_t, int) { level = std::max(level, omp_get_level()); });
  EXPECT_EQ(level, 0);
}

TEST(Threads, InsideARegionTasksRunSeriallyAsWorkerZero) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  std::atomic<int> tasks{0};
  std::atomic<int> faults{0};
#pragma omp parallel num_threads(3)
  {
    const int caller = omp_get_thread_num();
    Threads::openmp(4).parallel_for(10, [&](std::int64_t, int worker) {
      ++tasks;
      if (worker != 0 || omp_get_thread_num() != caller || omp_get_level() != 1) ++faults;
    });
  }
  EXPECT_EQ(tasks, 30);
  EXPECT_EQ(faults, 0);
}

TEST(Threads, FirstExceptionComesHome) {
  HostPool pool(3);
  std::vector<Threads> all = {Threads::serial(), pool.threads()};
  if (!testing::kThreadSanitizer) all.push_back(Threads::openmp(3));
  for (const Threads& threads : all) {
    const auto work = [&] {
      threads.parallel_for(50, [](std::int64_t task, int) { require(task != 7, "task ", task, " is unlucky"); });
    };
    EXPECT_EQ(error_of(work), "task 7 is unlucky");
    check_tasks(threads, 20);  // and nothing is left behind
  }
}

TEST(Threads, RemainingTasksAreSkipped) {
  HostPool pool(1);
  int done = 0;
  EXPECT_THROW(pool.threads().parallel_for(100,
                                           [&](std::int64_t task, int) {
                                             ++done;
                                             if (task == 4) throw 5;
                                           }),
               int);
  EXPECT_EQ(done, 5);
  EXPECT_EQ(pool.tasks_started, 100) << "the host still sees all its tasks through";
}

TEST(Threads, Refusals) {
  HostPool pool(1);
  expect_contains(error_of([] { Threads::openmp(-1); }), "workers is -1");
  expect_contains(error_of([] { Threads::host(1, nullptr, nullptr); }), "null");
  pool.workers = 0;
  expect_contains(error_of([&] { pool.threads(); }), "workers is 0, expected 1 or more");
}

TEST(Threads, AHostsWrongWorkerIsCaught) {
  const auto wrong = [](void*, std::int64_t, TaskFunction run, void* context) { run(context, 0, 2); };
  bool ran = false;
  const Threads threads = Threads::host(2, wrong, nullptr);
  const auto work = [&] { threads.parallel_for(2, [&](std::int64_t, int) { ran = true; }); };
  expect_contains(error_of(work), "worker 2, expected less than 2");
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace headway
