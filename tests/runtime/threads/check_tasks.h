// Each task once, workers in range, and never two tasks of one worker at the same time.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "headway/threads.h"

namespace headway::testing {

inline void check_tasks(const Threads& threads, std::int64_t tasks) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(tasks));
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads.workers()));
  std::atomic<int> faults{0};
  threads.parallel_for(tasks, [&](std::int64_t task, int worker) {
    if (worker < 0 || worker >= threads.workers()) {
      ++faults;
      return;
    }
    if (busy[worker]++ != 0) ++faults;
    ++seen[task];
    --busy[worker];
  });
  EXPECT_EQ(faults, 0);
  for (std::int64_t i = 0; i < tasks; ++i) ASSERT_EQ(seen[i], 1) << "task " << i;
}

}  // namespace headway::testing
