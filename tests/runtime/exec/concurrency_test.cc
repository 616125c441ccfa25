// One session under several threads, several thread counts, inside a host's parallel region, on a host's pool.
#include <gtest/gtest.h>
#include <omp.h>

#include <thread>

#include "headway/session.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/exec/test_operators.h"
#include "tests/runtime/host_pool.h"
#include "tests/runtime/sanitizers.h"

namespace headway::testing {
namespace {

/// Distinct data a caller, so that two that share memory show.
std::vector<float> input_for(int caller, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(caller * 1000) + static_cast<float>(i) * 0.37f;
  return values;
}

std::vector<float> expected_for(int caller, std::size_t n) {
  std::vector<float> values = input_for(caller, n);
  for (float& value : values) value = 2 * value + value;
  return values;
}

int faults(const Session& session, int caller, std::size_t n, const Threads& threads) {
  const std::vector<float> input = input_for(caller, n);
  return run_one(session, {input_of(input)}, threads) == expected_for(caller, n) ? 0 : 1;
}

TEST(Concurrency, TheCheckFindsFaults) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Double", "d", {x}));
  EXPECT_EQ(faults(Session(std::move(graph), registry.get()), 1, 9, Threads::serial()), 1);
}

TEST(Concurrency, EightThreadsAtOnceOnNewAndOldShapes) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get(), {3});
  std::atomic<int> wrong{0};
  std::atomic<int> ready{0};
  std::vector<std::thread> team;
  for (int caller = 0; caller < 8; ++caller) {
    team.emplace_back([&, caller] {
      ++ready;
      while (ready < 8) std::this_thread::yield();
      // All begin with one shape; later the five shapes compete for three places in the cache.
      for (int round = 0; round < 60; ++round) {
        wrong += faults(session, caller, 50 + static_cast<std::size_t>(round * (caller + 1) % 5), Threads::serial());
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, OneShapeIsPlannedOnce) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  std::atomic<int> wrong{0};
  std::vector<std::thread> team;
  for (int caller = 0; caller < 8; ++caller) {
    team.emplace_back([&, caller] { wrong += faults(session, caller, 33, Threads::serial()); });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(registry.plans("Add"), 1);
}

TEST(Concurrency, OneThenFourThenTwoWorkers) {
  if (kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  for (int workers : {1, 4, 2, 8, 1}) EXPECT_EQ(faults(session, workers, 500, Threads::openmp(workers)), 0) << workers;
}

TEST(Concurrency, HostPools) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  for (int workers : {1, 4, 2}) {
    HostPool pool(workers);
    EXPECT_EQ(faults(session, workers, 500, pool.threads()), 0) << workers;
    EXPECT_EQ(pool.calls, 2) << "a call a node";
    EXPECT_EQ(pool.tasks_started, 1000);
  }
}

TEST(Concurrency, HostPoolsOfSeveralSizesAtOnce) {
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  std::atomic<int> wrong{0};
  std::vector<std::thread> team;
  for (int caller = 0; caller < 4; ++caller) {
    team.emplace_back([&, caller] {
      HostPool pool(1 + caller);
      for (int round = 0; round < 20; ++round) wrong += faults(session, caller, 64, pool.threads());
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, CallersShareAPoolAndAProfiler) {
  constexpr int kCallers = 4, kRounds = 50;
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  const Threads pool = Threads::pool(3);
  Profiler profiler({3, 20});
  std::atomic<int> wrong{0};
  std::vector<std::thread> team;
  for (int caller = 0; caller < kCallers; ++caller) {
    team.emplace_back([&, caller] {
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t n = 40 + static_cast<std::size_t>(round % 3);
        const std::vector<float> input = input_for(caller, n);
        std::vector<float> output(n);
        const ConstTensorView inputs[] = {input_of(input)};
        const TensorView outputs[] = {output_of(&output)};
        session.run(inputs, outputs, pool, &profiler);
        if (output != expected_for(caller, n)) ++wrong;
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(wrong, 0);
  std::int64_t nodes = 0;
  for (const Profiler::Row& row : profiler.rows()) nodes += row.category == "node" ? row.count : 0;
  EXPECT_EQ(nodes, kCallers * kRounds * 2) << "a report a node of every run";
}

TEST(Concurrency, InsideAParallelRegion) {
  if (kThreadSanitizer) GTEST_SKIP() << "OpenMP";
  TestRegistry registry;
  const Session session(triple_graph(), registry.get());
  std::atomic<int> wrong{0};
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 20; ++round) wrong += faults(session, omp_get_thread_num(), 100, Threads::openmp(4));
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, AnExceptionLeavesTheSessionWhole) {
  TestRegistry registry;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  graph.add_output("y", graph.add_node("Picky", "picky", {x}));
  const Session session(std::move(graph), registry.get());
  for (int round = 0; round < 3; ++round) {
    error_of([&] { run_one(session, {input_of({-1, 2})}); });
    EXPECT_EQ(run_one(session, {input_of({1, 2})}), (std::vector<float>{1, 2}));
  }
}

}  // namespace
}  // namespace headway::testing
