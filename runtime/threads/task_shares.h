// Tasks dealt out to workers: each begins with a share of neighbours, the same one every time, and then helps the next
// worker with what is left of its. So a head's rows are found in the cache of the core that worked on them last, in the
// operator before or in the call before. Common to OpenMP's teams and our own pool; knows neither.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace headway {

/// Safe against workers that come late, even when another round has been dealt by then: what is left of a share and the
/// round that it belongs to are one word, so a task is claimed from the round that the worker was called for or not at
/// all. What describes a round (here `tasks_`) changes only when all its tasks are done, so whoever holds a claim may
/// read it.
class TaskShares {
 public:
  static constexpr std::int64_t kMaxTasks = std::int64_t{1} << 30;

  explicit TaskShares(int workers) : count_(std::min(workers, kMaxShares)) {}

  /// Deals a round of `tasks` ≤ kMaxTasks: the first shares are the longer ones, so that with fewer tasks than workers
  /// the first workers have one each. All tasks of the round before must be done.
  void deal(std::uint32_t round, std::int64_t tasks) {
    tasks_ = tasks;
    for (int s = 0; s < count_; ++s) {
      const auto left = static_cast<std::uint64_t>(begin(s + 1) - begin(s));
      shares_[s].word.store(std::uint64_t{round} << 32 | left, std::memory_order_release);
    }
  }

  /// Calls run(task) for each task that this worker gets of the round, and finished(n) for every n of them; the round
  /// stays as it is at least until finished() has been told of all its tasks.
  template <class Run, class Finished>
  void work(std::uint32_t round, int worker, Run run, Finished finished) {
    for (int other = 0; other < count_; ++other) {
      const int s = (worker + other) % count_;
      std::atomic<std::uint64_t>& word = shares_[s].word;
      int done = 0;
      std::uint64_t seen = word.load(std::memory_order_relaxed);
      while (seen >> 32 == round && static_cast<std::uint32_t>(seen) != 0) {
        if (!word.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire, std::memory_order_relaxed)) continue;
        run(begin(s + 1) - static_cast<std::int64_t>(static_cast<std::uint32_t>(seen)));
        ++done;
        seen = word.load(std::memory_order_relaxed);
      }
      if (done > 0) finished(done);
    }
  }

 private:
  static constexpr int kMaxShares = 64;
  struct alignas(64) Share {
    std::atomic<std::uint64_t> word{0};  ///< round << 32 | tasks left
  };

  /// Where share s begins.
  std::int64_t begin(int s) const { return tasks_ / count_ * s + std::min<std::int64_t>(s, tasks_ % count_); }

  const int count_;
  std::int64_t tasks_ = 0;
  Share shares_[kMaxShares];
};

}  // namespace headway
