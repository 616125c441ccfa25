// Offsets of lifetimes: never two alive at once on the same bytes, and reuse where lifetimes allow it.
#include "runtime/exec/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/runtime/error_of.h"

namespace headway {
namespace {

/// The first fault found, or "".
std::string fault_of(const std::vector<Lifetime>& lives, const MemoryPlan& plan) {
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (plan.offsets[i] % 64 != 0) return "misaligned";
    if (plan.offsets[i] + lives[i].bytes > plan.arena_bytes) return "outside the arena";
    for (std::size_t k = 0; k < i; ++k) {
      const bool in_time = lives[i].first <= lives[k].last && lives[k].first <= lives[i].last;
      const bool in_space =
          plan.offsets[i] < plan.offsets[k] + lives[k].bytes && plan.offsets[k] < plan.offsets[i] + lives[i].bytes;
      if (in_time && in_space) return "overlap of " + std::to_string(k) + " and " + std::to_string(i);
    }
  }
  return "";
}

TEST(MemoryPlan, TheCheckFindsFaults) {
  const std::vector<Lifetime> lives = {{0, 1, 128}, {1, 2, 128}};
  EXPECT_EQ(fault_of(lives, {{0, 64}, 256, 256}), "overlap of 0 and 1");
  EXPECT_EQ(fault_of(lives, {{0, 128}, 192, 256}), "outside the arena");
  EXPECT_EQ(fault_of(lives, {{0, 132}, 512, 256}), "misaligned");
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> lives;
  for (int i = 0; i < 10; ++i) lives.push_back({i, i + 1, 640});
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(fault_of(lives, plan), "");
  EXPECT_EQ(plan.arena_bytes, 1280u);
  EXPECT_EQ(plan.sum_bytes, 6400u);
}

TEST(MemoryPlan, TheSmallestGapThatFits) {
  // 1 and 3 die early and leave gaps of 640 and 256 beside long-lived neighbours; 5 fits both and must take the small.
  const std::vector<Lifetime> lives = {{0, 9, 1280}, {0, 1, 640}, {0, 9, 512}, {0, 1, 256}, {0, 9, 192}, {5, 6, 128}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(fault_of(lives, plan), "");
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
  EXPECT_EQ(plan.arena_bytes, 1280u + 640 + 512 + 256 + 192);
}

TEST(MemoryPlan, OddSizesAreRounded) {
  const std::vector<Lifetime> lives = {{0, 1, 1}, {0, 1, 65}, {0, 1, 0}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(fault_of(lives, plan), "");
  EXPECT_EQ(plan.arena_bytes, 192u);
  EXPECT_EQ(plan_memory({}).arena_bytes, 0u);
}

TEST(MemoryPlan, Random) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random() % 30);
      lives.push_back({first, first + static_cast<int>(random() % 6), random() % 5000});
    }
    const MemoryPlan plan = plan_memory(lives);
    ASSERT_EQ(fault_of(lives, plan), "") << "round " << round;
    EXPECT_LT(plan.arena_bytes, plan.sum_bytes);
  }
}

TEST(MemoryPlan, Overflow) {
  const std::size_t half = std::size_t{1} << 62;
  testing::expect_contains(testing::error_of([&] {
                             plan_memory(std::vector<Lifetime>{{0, 1, half}, {0, 1, half}});
                           }),
                           "63 bits");
}

TEST(MemoryPlan, VeryManyLifetimesArePlacedInOrder) {
  std::mt19937 random(7);
  std::vector<Lifetime> lives;
  for (int i = 0; i < 9000; ++i) {
    lives.push_back({i, i + static_cast<int>(random() % 40), random() % 5000});
  }
  std::shuffle(lives.begin(), lives.end(), random);
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(fault_of(lives, plan), "");
  // About 20 alive at a time, 2500 bytes each; the free stretches between them cost something.
  EXPECT_LT(plan.arena_bytes, 3u * 20 * 2500);
  EXPECT_GT(plan.sum_bytes, 9000u * 2400);
}

TEST(MemoryPlan, AHundredThousandLifetimesTakeNoQuadraticTime) {
  std::vector<Lifetime> lives;
  for (int i = 0; i < 100'000; ++i) lives.push_back({i, i + 1, 640});
  EXPECT_EQ(plan_memory(lives).arena_bytes, 1280u);
}

}  // namespace
}  // namespace headway
