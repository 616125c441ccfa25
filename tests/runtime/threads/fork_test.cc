// A child of a process that has used a pool: it has none of the threads, and works all the same.
#include <gtest/gtest.h>

#include <thread>

#include "headway/threads.h"
#include "tests/runtime/sanitizers.h"
#include "tests/support/in_child.h"

namespace headway::testing {
namespace {

/// Sums over tasks; with `all` every worker must have had one. Before a fork all have: a thread that is still starting
/// may hold a lock of the address sanitizer, which the child would inherit.
bool sums(const Threads& threads, bool all = false) {
  std::atomic<std::int64_t> sum{0};
  std::atomic<int> begun{0};
  threads.parallel_for(all ? threads.workers() : 100, [&](std::int64_t task, int) {
    sum += task;
    ++begun;
    while (all && begun < threads.workers()) std::this_thread::yield();
  });
  return sum == (all ? threads.workers() * (threads.workers() - 1) / 2 : 4950);
}

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
  }
};

TEST_F(Fork, AUsedPoolStartsAnewInTheChild) {
  const Threads threads = Threads::pool(3);
  ASSERT_TRUE(sums(threads, true));
  EXPECT_EQ(fault_in_child([&] { return sums(threads, true) && sums(threads) && sums(Threads::serial()); }), "");
  EXPECT_TRUE(sums(threads, true)) << "and is whole in the parent";
}

TEST_F(Fork, TheChildOfAChild) {
  const Threads threads = Threads::pool(2);
  ASSERT_TRUE(sums(threads, true));
  EXPECT_EQ(fault_in_child([&] {
              return sums(threads, true) && fault_in_child([&] { return sums(threads, true); }).empty() &&
                     sums(threads, true);
            }),
            "");
}

TEST_F(Fork, WhileAnotherThreadIsInsideACall) {
  const Threads threads = Threads::pool(2);
  std::atomic<int> begun{0};
  std::atomic<bool> end{false};
  std::thread other([&] {
    threads.parallel_for(2, [&](std::int64_t, int) {
      ++begun;
      while (!end) std::this_thread::yield();
    });
  });
  while (begun < 2) std::this_thread::yield();
  EXPECT_EQ(fault_in_child([&] { return sums(threads, true); }), "");
  end = true;
  other.join();
}

TEST_F(Fork, ThePoolGoesInTheChild) {
  auto threads = std::make_unique<Threads>(Threads::pool(3));
  ASSERT_TRUE(sums(*threads, true));
  EXPECT_EQ(fault_in_child([&] {
              threads.reset();  // joins nobody
              return true;
            }),
            "");
  EXPECT_EQ(fault_in_child([&] {
              if (!sums(*threads, true)) return false;
              threads.reset();  // joins the child's own
              return true;
            }),
            "");
}

}  // namespace
}  // namespace headway::testing
