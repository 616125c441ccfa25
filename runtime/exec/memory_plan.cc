// Greedy offsets by size.
#include "runtime/exec/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "headway/error.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::size_t kAlignment = 64;
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

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<Block> placed;
  for (std::size_t i : order) {
    const Lifetime& life = lifetimes[i];
    // The sum bounds every offset, so this one check covers them all.
    require(life.bytes <= kLimit - kAlignment && plan.sum_bytes <= kLimit - kAlignment - life.bytes,
            "intermediate tensors of ", life.bytes, " bytes beside ", plan.sum_bytes, " do not fit 63 bits");
    const std::size_t bytes = (life.bytes + kAlignment - 1) / kAlignment * kAlignment;
    plan.sum_bytes += bytes;
    if (bytes == 0) continue;
    const std::size_t begin = best_fit(placed, life, bytes);
    const Block block{begin, begin + bytes, life.first, life.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Block& a, const Block& b) { return a.begin < b.begin; }),
                  block);
    plan.offsets[i] = begin;
    plan.arena_bytes = std::max(plan.arena_bytes, block.end);
  }
  return plan;
}

}  // namespace headway
