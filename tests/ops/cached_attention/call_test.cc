// Behaviours of a call that the random tests do not aim at: memory that must not be read, outputs over inputs, empty
// rows, the number of tasks, allocations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/ops/cached_attention/cached_case.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

CachedShape grouped(std::vector<CachedSequence> sequences) {
  CachedShape shape;
  shape.spec.num_heads = 4;
  shape.spec.num_kv_heads = 2;
  shape.spec.head_dim = 16;
  shape.sequences = std::move(sequences);
  return shape;
}

TEST(CachedAttentionCall, KeysThatAMaskHidesDoNotLeakWhateverTheyHold) {
  on_every_target([&](const std::string& target) {
    for (const bool invariant : {false, true}) {
      for (const std::int64_t tokens : {1, 20}) {
        for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
          CachedShape shape = grouped({{1, tokens, 2200}, {2, tokens, 50}});
          shape.spec.batch_invariant = invariant;
          shape.mask = CachedMask::kBool;
          CachedCase problem(shape);
          int hidden = 0;
          for (std::int64_t j = 0; j < 2200; ++j) {
            bool seen = false;
            for (std::int64_t i = 0; i < tokens; ++i) seen = seen || problem.mask_at(0, 2200 - tokens + i, j) == 0;
            if (seen) continue;
            problem.write_key(0, j, 0, bad);
            problem.write_value(0, j, 1, bad);
            ++hidden;
          }
          EXPECT_TRUE(tokens > 1 || hidden > 0);
          problem.run(Threads::serial());
          ASSERT_EQ(problem.compare(), "") << target << ", " << tokens << " tokens";
        }
      }
    }
  });
}

// A whole split or span of them, whose state has no key at all.
TEST(CachedAttentionCall, AStretchOfHiddenKeysDoesNotLeakWhateverItHolds) {
  on_every_target([&](const std::string& target) {
    for (const bool invariant : {false, true}) {
      for (const std::int64_t tokens : {1, 20}) {
        for (const auto& [begin, end] : {std::pair<int, int>{0, 300}, {128, 256}, {512, 513}, {50, 600}}) {
          CachedShape shape = grouped({{1, tokens, 600}});
          shape.spec.batch_invariant = invariant;
          const std::unique_ptr<bool[]> mask(new bool[static_cast<std::size_t>(tokens * 600)]);
          for (std::int64_t i = 0; i < tokens * 600; ++i) mask[i] = i % 600 < begin || i % 600 >= end;
          std::vector<float> outs[2];
          for (const bool bad : {false, true}) {
            CachedCase problem(shape);
            for (std::int64_t j = begin; bad && j < end; ++j) {
              problem.write_key(0, j, 0, kNan);
              problem.write_value(0, j, 1, kNan);
            }
            problem.run(Threads::serial());  // fills the query
            const CachedAttention attention(problem.shape().spec);
            const AlignedBuffer workspace(attention.workspace_bytes(1));
            CachedAttentionArgs args = problem.args();
            args.mask = view_of(static_cast<const bool*>(mask.get()), {tokens, 600});
            attention.run(args, workspace.data(), Threads::serial());
            outs[bad] = problem.out();
          }
          for (std::size_t i = 0; i < outs[0].size(); ++i) {
            ASSERT_NEAR(outs[1][i], outs[0][i], 2e-6)
                << target << ", " << tokens << " tokens, " << begin << " to " << end << ", element " << i;
          }
        }
      }
    }
  });
}

TEST(CachedAttentionCall, ALaterTokenOfTheChunkDoesNotLeakIntoEarlierOnes) {
  on_every_target([&](const std::string& target) {
    for (const std::int64_t tokens : {2, 20}) {
      CachedCase problem(grouped({{1, tokens, 45}}));
      problem.write_value(0, 44, 0, kNan);
      problem.write_key(0, 44, 1, kNan);
      problem.run(Threads::serial());
      const std::vector<float> out = problem.out();
      const std::size_t row = 4 * 16;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool last = i >= out.size() - row;
        ASSERT_EQ(std::isnan(out[i]), last) << target << ", element " << i << " of " << tokens << " tokens";
      }
      // The rows that are numbers are the right ones.
      const CachedCase::Exact first = problem.exact(0, 0, 3);
      EXPECT_NEAR(out[3 * 16], first.out[0], 1e-5);
    }
  });
}

TEST(CachedAttentionCall, ANanScoreGivesNanInItsRowAlone) {
  on_every_target([&](const std::string& target) {
    for (const std::int64_t length : {30, 3000}) {
      CachedCase problem(grouped({{1, 1, length}, {2, 1, 30}}));
      problem.write_key(0, 7, 1, kNan);
      problem.run(Threads::serial());
      const std::vector<float> out = problem.out();
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool spoiled = i >= 2 * 16 && i < 4 * 16;  // heads 2 and 3 of the first token
        ASSERT_EQ(std::isnan(out[i]), spoiled) << target << ", element " << i;
      }
    }
  });
}

TEST(CachedAttentionCall, ValuesNearTheLargestFloatDoNotOverflow) {
  for (const bool invariant : {false, true}) {
    CachedShape shape = grouped({{1, 1, 2500}, {2, 12, 600}});
    shape.spec.batch_invariant = invariant;
    CachedCase problem(shape);
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::int64_t p = 0; p < shape.sequences[b].length; ++p) {
        for (std::int64_t h = 0; h < 2; ++h) problem.write_value(b, p, h, 3e38f);
      }
    }
    problem.run(Threads::serial());
    for (const float x : problem.out()) ASSERT_NEAR(x / 3e38f, 1, 1e-4) << "invariant " << invariant;
  }
}

TEST(CachedAttentionCall, SequencesWithoutPositionsOrTokensAreFine) {
  CachedShape shape = grouped({{1, 0, 0}, {2, 1, 0}, {3, 0, 9}, {4, 3, 1}, {5, 1, 5}, {6, 12, 0}});
  for (const bool sinks : {false, true}) {
    shape.sinks = sinks;
    CachedCase problem(shape);
    problem.run(Threads::serial());
    EXPECT_EQ(problem.compare(), "");
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(problem.out()[i], 0);  // the token of an empty sequence
    EXPECT_TRUE(sinks || problem.log_sum_exp()[0] == -std::numeric_limits<float>::infinity());
  }
  CachedCase none(grouped({}));
  none.run(Threads::serial());
}

TEST(CachedAttentionCall, OutMayLieBesideTheQueryInARowOfOneBuffer) {
  CachedCase problem(grouped({{1, 1, 40}, {2, 9, 30}}));
  problem.run(Threads::serial());
  const std::vector<float> expected = problem.out();
  // [T, query | out]: columns of their own of every row.
  std::vector<float> buffer(10 * 128, kNan);
  CachedAttentionArgs args = problem.args();
  const TensorView query = view_of(buffer.data(), {10, 4, 16}, {128, 16, 1});
  copy_elements(args.query, query);
  args.query = query;
  args.out = view_of(buffer.data() + 64, {10, 4, 16}, {128, 16, 1});
  const CachedAttention attention(problem.shape().spec);
  const AlignedBuffer workspace(attention.workspace_bytes(1));
  attention.run(args, workspace.data(), Threads::serial());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(buffer[i / 64 * 128 + 64 + i % 64], expected[i]);
}

TEST(CachedAttentionCall, SequencesMayShareBlocks) {
  CachedShape shape = grouped({{1, 1, 40}, {1, 1, 32}});
  shape.block = 16;
  CachedCase problem(shape);
  problem.run(Threads::serial());
  const std::vector<float> expected = problem.out();
  // The second reads the first's blocks, as a shared prefix; its own are spoiled.
  for (std::int64_t p = 0; p < 32; ++p) problem.write_value(1, p, 0, kNan);
  CachedAttentionArgs args = problem.args();
  const auto* const table = args.cache.block_table.as<std::int32_t>();
  std::vector<std::int32_t> shared(table, table + 6);
  for (int i = 0; i < 3; ++i) shared[static_cast<std::size_t>(3 + i)] = shared[static_cast<std::size_t>(i)];
  args.cache.block_table = view_of(std::as_const(shared).data(), {2, 3});
  std::vector<float> out(expected.size());
  args.out = view_of(out.data(), {2, 4, 16});
  const CachedAttention attention(problem.shape().spec);
  const AlignedBuffer workspace(attention.workspace_bytes(1));
  attention.run(args, workspace.data(), Threads::serial());
  EXPECT_EQ(out, expected);
}

TEST(CachedAttentionCall, AWarmRunAllocatesNothing) {
  for (const bool invariant : {false, true}) {
    CachedShape shape = grouped({{1, 1, 2500}, {2, 40, 60}, {3, 4, 300}});
    shape.spec.batch_invariant = invariant;
    shape.alibi = true;
    shape.mask = CachedMask::kBits;
    shape.block = 16;
    CachedCase problem(shape);
    const CachedAttention attention(problem.shape().spec);
    const Threads threads = Threads::openmp(3);
    const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
    const CachedAttentionArgs args = problem.args();
    attention.run(args, workspace.data(), threads);
    const AllocationCounter counter;
    attention.run(args, workspace.data(), threads);
    EXPECT_EQ(counter.count(), 0) << "invariant " << invariant;
  }
}

/// The plan of one decode over `length` positions.
CachedAttentionPlan plan_of(CachedAttentionSpec spec, std::vector<std::int32_t> lengths, std::int64_t tokens = 1) {
  spec.max_cache = 1 << 17;
  spec.max_batch = 64;
  spec.max_tokens = 4096;
  const auto batch = static_cast<std::int64_t>(lengths.size());
  std::vector<std::int32_t> starts;
  for (std::int64_t b = 0; b <= batch; ++b) starts.push_back(static_cast<std::int32_t>(b * tokens));
  // Shapes alone are looked at: all rows share a few bytes.
  std::vector<float> memory(1 << 20);
  CachedAttentionArgs args;
  args.query = view_of(memory.data(), {batch * tokens, spec.num_heads, spec.head_dim});
  args.query_starts = view_of(std::as_const(starts).data(), {batch + 1});
  args.lengths = view_of(std::as_const(lengths).data(), {batch});
  std::vector<float> out(static_cast<std::size_t>(batch * tokens * spec.num_heads * spec.head_dim));
  args.out = view_of(out.data(), {batch * tokens, spec.num_heads, spec.head_dim});
  const Dims cache = {batch, *spec.num_kv_heads, 1 << 17, spec.head_dim};
  float cell = 0;
  args.cache.key = view_of(&cell, cache, {0, 0, 0, 1});
  args.cache.value = view_of(&cell, cache, {0, 0, 0, 1});
  return CachedAttention(spec).plan(args);
}

TEST(CachedAttentionPlanned, OneHeadWithManyKeysHasFourTasksForEachOf64Workers) {
  CachedAttentionSpec spec;
  spec.head_dim = 4;
  spec.num_kv_heads = 1;
  for (const std::int64_t group : {1, 4, 8, 16}) {
    spec.num_heads = group;
    EXPECT_GE(plan_of(spec, {32768}).tasks, 4 * 64) << group << " heads share a key head";
    EXPECT_GE(plan_of(spec, {2048}).tasks, 16) << group << " heads share a key head";
    CachedAttentionSpec invariant = spec;
    invariant.batch_invariant = true;
    EXPECT_GE(plan_of(invariant, {65536}).tasks, 4 * 64) << group << " heads share a key head";
  }
  spec.num_heads = 8;
  spec.num_kv_heads = 8;
  EXPECT_GE(plan_of(spec, {8192}).tasks, 4 * 64);
  EXPECT_GE(plan_of(spec, {32768}, 40).tasks, 4 * 64) << "a chunk of 40 tokens";
}

TEST(CachedAttentionPlanned, TasksFollowTheLengthsAndNotTheCapacity) {
  CachedAttentionSpec spec;
  spec.head_dim = 4;
  spec.num_heads = spec.num_kv_heads.emplace(8);
  const CachedAttentionPlan one = plan_of(spec, {300});
  EXPECT_EQ(one.tasks, 8);
  EXPECT_EQ(one.split_sequences, 0);
  EXPECT_EQ(one.few_query_tasks, 8);
  const CachedAttentionPlan many = plan_of(spec, std::vector<std::int32_t>(64, 4000));
  EXPECT_EQ(many.tasks, 8 * 64);
  EXPECT_EQ(many.split_sequences, 0) << "there are enough sequences";
  const CachedAttentionPlan mixed = plan_of(spec, {100000, 5, 5});
  EXPECT_EQ(mixed.split_sequences, 1);
  EXPECT_GE(mixed.tasks, 256);
  EXPECT_LE(mixed.tasks, 2 * 256 + 16);
}

TEST(CachedAttentionCall, ThePoolOfTheLibraryGivesTheSameBits) {
  CachedCase problem(grouped({{1, 1, 3000}, {2, 33, 80}}));
  problem.run(Threads::serial());
  const std::vector<float> expected = problem.out();
  problem.run(Threads::pool(3));
  EXPECT_EQ(problem.out(), expected);
}

TEST(CachedAttentionCall, OneThatWasMovedFromCanBeAssignedTo) {
  CachedCase problem(grouped({{1, 1, 40}}));
  CachedAttention attention(problem.shape().spec);
  CachedAttention other(std::move(attention));
  attention = std::move(other);
  problem.run(attention, Threads::serial());
  EXPECT_EQ(problem.compare(), "");
  EXPECT_NE(attention.explain().find("2 heads per key head"), std::string::npos) << attention.explain();
}

TEST(CachedAttentionCall, AProfilerSeesTheWork) {
  CachedCase problem(grouped({{1, 1, 100}, {2, 20, 20}}));
  const CachedAttention attention(problem.shape().spec);
  const AlignedBuffer workspace(attention.workspace_bytes(1));
  Profiler profiler({.workers = 1, .trace_events_per_worker = 0});
  attention.run(problem.args(), workspace.data(), Threads::serial(), &profiler);
  std::int64_t nominal = 0;
  for (const Profiler::Row& row : profiler.rows()) nominal += row.work.flops_nominal;
  EXPECT_EQ(nominal, 2 * 4 * (16 + 16) * (100 + 20 * 21 / 2));
}

}  // namespace
}  // namespace headway::testing
