// Greedy offsets by size.
#include "runtime/exec/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "headway/error.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxPaired = 8192;  // 67 million pairs of lifetimes take tens of milliseconds
constexpr std::size_t kLimit = std::numeric_limits<std::int64_t>::max();

struct Block {
  std::size_t begin;
  std::size_t end;
  int first;
  int last;
};

/// Start of the smallest gap of at least `bytes` among the blocks alive in [first, last]; behind all when none is.
/// `placed` is sorted by begin.
std::size_t best_fit(const std::vector<Block>& placed, const Lifetime& life, std::size_t bytes) {
  std::size_t best = kLimit;
  std::size_t best_gap = kLimit;
  std::size_t end = 0;  // of the blocks seen so far
  for (const Block& block : placed) {
    if (block.last < life.first || block.first > life.last) continue;
    if (block.begin > end) {
      const std::size_t gap = block.begin - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
    }
    end = std::max(end, block.end);
  }
  return best_gap == kLimit ? end : best;
}

/// Free stretches of a growing arena, neighbours joined.
class FreeList {
 public:
  /// The smallest stretch that fits, else the end of the arena.
  std::size_t take(std::size_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      const std::size_t begin = end_;
      end_ += bytes;
      return begin;
    }
    const auto [size, begin] = *fit;
    remove(begin, size);
    if (size > bytes) insert(begin + bytes, size - bytes);
    return begin;
  }
  void give_back(std::size_t begin, std::size_t bytes) {
    auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.end() && begin + bytes == next->first) {
      bytes += next->second;
      remove(next->first, next->second);
      next = by_begin_.lower_bound(begin);
    }
    if (next != by_begin_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == begin) {
        remove(before, size);
        begin = before;
        bytes += size;
      }
    }
    insert(begin, bytes);
  }
  std::size_t end() const { return end_; }

 private:
  void insert(std::size_t begin, std::size_t bytes) {
    by_begin_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
  }
  void remove(std::size_t begin, std::size_t bytes) {
    by_begin_.erase(begin);
    by_size_.erase({bytes, begin});
  }
  std::map<std::size_t, std::size_t> by_begin_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

/// In the order of the steps, n log n: for graphs whose pairs of lifetimes are too many to look at.
void place_in_order(std::span<const Lifetime> lifetimes, std::span<const std::size_t> bytes, MemoryPlan* plan) {
  std::vector<std::size_t> begins(lifetimes.size());
  std::iota(begins.begin(), begins.end(), std::size_t{0});
  std::vector<std::size_t> ends = begins;
  const auto by = [&](int Lifetime::*step) {
    return [&lifetimes, step](std::size_t a, std::size_t b) { return lifetimes[a].*step < lifetimes[b].*step; };
  };
  std::stable_sort(begins.begin(), begins.end(), by(&Lifetime::first));
  std::stable_sort(ends.begin(), ends.end(), by(&Lifetime::last));
  FreeList free;
  std::size_t ended = 0;
  for (const std::size_t i : begins) {
    for (; lifetimes[ends[ended]].last < lifetimes[i].first; ++ended) {
      const std::size_t gone = ends[ended];
      if (bytes[gone] != 0) free.give_back(plan->offsets[gone], bytes[gone]);
    }
    if (bytes[i] != 0) plan->offsets[i] = free.take(bytes[i]);
  }
  plan->arena_bytes = free.end();
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> bytes;
  for (const Lifetime& life : lifetimes) {
    // The sum bounds every offset, so this one check covers them all.
    require(life.bytes <= kLimit - kAlignment && plan.sum_bytes <= kLimit - kAlignment - life.bytes,
            "intermediate tensors of ", life.bytes, " bytes beside ", plan.sum_bytes, " do not fit 63 bits");
    bytes.push_back((life.bytes + kAlignment - 1) / kAlignment * kAlignment);
    plan.sum_bytes += bytes.back();
  }
  if (lifetimes.size() > kMaxPaired) {
    place_in_order(lifetimes, bytes, &plan);
    return plan;
  }
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<Block> placed;
  for (const std::size_t i : order) {
    if (bytes[i] == 0) continue;
    const Lifetime& life = lifetimes[i];
    const std::size_t begin = best_fit(placed, life, bytes[i]);
    const Block block{begin, begin + bytes[i], life.first, life.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Block& a, const Block& b) { return a.begin < b.begin; }),
                  block);
    plan.offsets[i] = begin;
    plan.arena_bytes = std::max(plan.arena_bytes, block.end);
  }
  return plan;
}

}  // namespace headway
