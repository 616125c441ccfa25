// Continuous batching without a model: what goes into each step, who is driven out, that no block is lost; and how the
// next token is chosen.
#include "tools/engine/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/runtime/error_of.h"
#include "tests/support/random_data.h"
#include "tools/engine/sampler.h"

namespace headway::engine {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::Random;

Request request(const std::string& id, std::int64_t prompt, std::int64_t new_tokens) {
  Request r;
  r.id = id;
  r.prompt.assign(static_cast<std::size_t>(prompt), 5);
  r.max_new_tokens = new_tokens;
  return r;
}

std::vector<std::int32_t> ones(const Batch& batch) { return std::vector<std::int32_t>(batch.sampled.size(), 1); }

TEST(Scheduler, DecodesComeFirstAndPromptsFillTheStep) {
  BlockPool pool(64, 4);
  Scheduler scheduler({10, 8, 100}, &pool);
  scheduler.submit(request("a", 3, 5));
  scheduler.submit(request("b", 17, 5));
  EXPECT_EQ(scheduler.next().query_starts, (std::vector<std::int32_t>{0, 3, 10}));
  EXPECT_EQ(scheduler.finish({1}).size(), 0u);  // a's first token; b's prompt has ten more
  const Batch& second = scheduler.next();
  EXPECT_EQ(second.lengths, (std::vector<std::int32_t>{4, 16}));
  EXPECT_EQ(second.query_starts, (std::vector<std::int32_t>{0, 1, 10}));
  EXPECT_EQ(second.sampled, std::vector<std::int64_t>{0});
  scheduler.finish({1});
  const Batch& third = scheduler.next();
  EXPECT_EQ(third.lengths, (std::vector<std::int32_t>{5, 17}));
  EXPECT_EQ(third.sampled, (std::vector<std::int64_t>{0, 1}));
}

TEST(Scheduler, EveryTokenIsComputedOnceBetweenPreemptionsAndNoBlockIsLost) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const std::int64_t blocks = random.between(4, 20), size = random.between(1, 5);
    BlockPool pool(blocks, size);
    Scheduler scheduler({random.between(1, 12), random.between(1, 6), 1000}, &pool);
    std::map<std::string, std::int64_t> wanted;
    for (int i = 0; i < 12; ++i) {
      const std::int64_t prompt = random.between(1, blocks * size), most = blocks * size + 1 - prompt;
      const Request r = request(std::to_string(i), prompt, random.between(1, most));
      wanted[r.id] = r.max_new_tokens;
      scheduler.submit(r);
    }
    std::int64_t finished = 0;
    for (int step = 0; !scheduler.idle(); ++step) {
      ASSERT_LT(step, 20000) << "seed " << seed << " does not end";
      const Batch& batch = scheduler.next();
      ASSERT_FALSE(batch.rows.empty()) << "seed " << seed;
      std::set<std::int32_t> used;
      for (const Batch::Row& row : batch.rows) {
        const Sequence& s = *row.sequence;
        ASSERT_GE(row.count, 1);
        ASSERT_LE(s.cached + row.count, static_cast<std::int64_t>(s.blocks.size()) * size);
        for (const std::int32_t block : s.blocks)
          ASSERT_TRUE(used.insert(block).second) << "block " << block << " twice";
      }
      for (const Sequence& done : scheduler.finish(ones(batch))) {
        EXPECT_EQ(done.generated(), wanted.at(done.request.id));
        ++finished;
      }
    }
    EXPECT_EQ(finished, 12);
    EXPECT_EQ(pool.available(), blocks);
  }
}

TEST(Scheduler, TheYoungestIsDrivenOutAndKeepsWhatItGenerated) {
  BlockPool pool(4, 2);
  Scheduler scheduler({8, 8, 100}, &pool);
  scheduler.submit(request("old", 3, 5));
  scheduler.submit(request("young", 3, 3));
  std::vector<std::string> order;
  std::int64_t computed = 0;
  while (!scheduler.idle()) {
    const Batch& batch = scheduler.next();
    computed += static_cast<std::int64_t>(batch.tokens.size());
    for (const Sequence& done : scheduler.finish(ones(batch))) order.push_back(done.request.id);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"old", "young"}));
  EXPECT_EQ(scheduler.preempted(), 1);
  EXPECT_GT(computed, 3 + 4 + 3 + 2);  // some tokens were computed again
}

TEST(Scheduler, StopsBehindAStopToken) {
  BlockPool pool(8, 4);
  Scheduler scheduler({8, 8, 100}, &pool);
  Request r = request("a", 2, 9);
  r.stop = {5, 7};  // the prompt's own 5 do not count
  scheduler.submit(r);
  scheduler.next();
  EXPECT_TRUE(scheduler.finish({1}).empty());
  scheduler.next();
  const std::vector<Sequence> done = scheduler.finish({7});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tokens, (std::vector<std::int32_t>{5, 5, 1, 7}));
}

TEST(Scheduler, RefusesWhatCanNeverRun) {
  BlockPool pool(4, 4);
  Scheduler scheduler({8, 8, 100}, &pool);
  expect_contains(error_of([&] { scheduler.submit(request("big", 10, 8)); }),
                  "request big: 10 prompt tokens and 8 new ones, expected at most 17 in all");
  expect_contains(error_of([&] { scheduler.submit(request("none", 0, 8)); }), "the prompt is empty");
  expect_contains(error_of([&] { scheduler.submit(request("no", 1, 0)); }), "max_new_tokens is 0");
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  const std::vector<float> logits = {1, 3, 3, -2};
  EXPECT_EQ(next_token(logits, {}, 0), 1);
}

TEST(Sampler, DrawsByProbabilityAmongThoseThatAreLeft) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f), std::log(0.5f)};
  const auto shares = [&](Sampling sampling) {
    std::vector<double> share(4);
    for (std::int64_t position = 0; position < 20000; ++position) {
      const auto token = static_cast<std::size_t>(next_token(logits, sampling, position));
      share[token] += 1.0 / 20000;
    }
    return share;
  };
  Sampling sampling;
  sampling.temperature = 1;
  sampling.seed = 3;
  const std::vector<double> all = shares(sampling);
  // Five standard deviations of 20,000 draws are 0.018 at most.
  EXPECT_NEAR(all[2], 5 / 8.5, 0.018);
  EXPECT_NEAR(all[1], 2 / 8.5, 0.018);
  EXPECT_NEAR(all[3], 0.5 / 8.5, 0.018);
  sampling.top_k = 2;
  const std::vector<double> two = shares(sampling);
  EXPECT_NEAR(two[2], 5 / 7.0, 0.018);
  EXPECT_EQ(two[0] + two[3], 0);
  sampling.top_k = 0;
  sampling.top_p = 0.5;  // the most likely one has more than that
  EXPECT_NEAR(shares(sampling)[2], 1, 1e-9);
  sampling.top_p = 1;
  sampling.temperature = 1e-3;
  EXPECT_NEAR(shares(sampling)[2], 1, 1e-9);
}

TEST(Sampler, TheSameSeedAndPositionDrawTheSame) {
  std::vector<float> logits(50, 0.0f);
  Sampling sampling;
  sampling.temperature = 1;
  std::set<std::int32_t> drawn;
  for (std::int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(next_token(logits, sampling, position), next_token(logits, sampling, position));
    drawn.insert(next_token(logits, sampling, position));
  }
  EXPECT_GT(drawn.size(), 20u);
}

}  // namespace
}  // namespace headway::engine
