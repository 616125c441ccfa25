// append(): where rows go, what they become, and what is refused. The oracle rotates and normalises in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "headway/error.h"
#include "headway/kv_cache.h"
#include "tests/ops/cached_attention/append_case.h"
#include "tests/ops/cached_attention/cached_case.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/simd/tile_case.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

TEST(Append, RowsGoToTheirPositionsInEveryKindOfCache) {
  for (const std::int64_t block : {0, 1, 3, 16}) {
    for (const std::int64_t ring : {0, 12, 4}) {
      if (block > 0 && ring > 0) continue;
      AppendShape shape;
      shape.block = block;
      shape.ring = ring;
      if (ring == 4) shape.lengths = {5, 12, 3, 9};  // five tokens of the last sequence go to four rows
      AppendCase problem(shape);
      problem.run();
      problem.check("block " + std::to_string(block) + ", ring " + std::to_string(ring));
    }
  }
}

TEST(Append, RandomNormsRotationsAndTypes) {
  on_every_target([&](const std::string& target) {
    Random random(99);
    for (int n = 0; n < 120; ++n) {
      AppendShape shape;
      shape.type = random.pick({DataType::kF32, DataType::kBF16, DataType::kF16});
      shape.cache_type = random.pick({DataType::kF32, DataType::kBF16, DataType::kF16});
      shape.head_dim = random.pick<std::int64_t>({2, 8, 20, 64, 96});
      shape.value_dim = random.pick<std::int64_t>({1, 16, 33});
      shape.rotary_dim = random.chance(0.7) ? 2 * random.between(1, shape.head_dim / 2) : 0;
      shape.interleaved = random.chance(0.5);
      shape.norm = random.chance(0.5);
      shape.across = random.chance(0.3);
      shape.weights = random.chance(0.7);
      shape.offset = random.chance(0.3) ? 1.0f : 0.0f;
      shape.positions = random.chance(0.3);
      shape.block = random.pick<std::int64_t>({0, 4});
      AppendCase problem(shape);
      problem.run(Threads::openmp(1 + n % 3));
      problem.check(target + " case " + std::to_string(n));
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Append, ScattersBySlotMapping) {
  Random random(5);
  const Tensor key = random_tensor(DataType::kF32, {4, 2, 8}, random),
               value = random_tensor(DataType::kF32, {4, 2, 6}, random);
  Tensor cache_key(DataType::kF32, {3, 2, 5, 8}), cache_value(DataType::kF32, {3, 2, 5, 6});
  std::fill_n(cache_key.data<float>(), cache_key.count(), -7.0f);
  std::fill_n(cache_value.data<float>(), cache_value.count(), -7.0f);
  const std::vector<std::int64_t> mapping = {14, -1, 0, 6};
  AppendArgs args;
  args.key = key.view();
  args.value = value.view();
  args.slot_mapping = view_of(mapping.data(), {4});
  KvCache cache;
  cache.key = cache_key.view();
  cache.value = cache_value.view();
  append(args, cache, Threads::serial());
  std::int64_t touched = 0;
  for (std::int64_t i = 0; i < cache_key.count(); ++i) touched += cache_key.data<float>()[i] != -7 ? 1 : 0;
  EXPECT_EQ(touched, 3 * 2 * 8);
  for (const std::int64_t t : {0, 2, 3}) {
    const std::int64_t row = mapping[static_cast<std::size_t>(t)];
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 6; ++d) {
        EXPECT_EQ(cache_value.data<float>()[((row / 5 * 2 + h) * 5 + row % 5) * 6 + d],
                  value.data<float>()[(t * 2 + h) * 6 + d]);
      }
    }
  }
}

TEST(Append, WhatItWritesIsWhatAttentionReads) {
  // A prefill in two chunks through append() against a cache that was filled at once.
  CachedShape shape;
  shape.spec.num_heads = 4;
  shape.spec.num_kv_heads = 2;
  shape.spec.head_dim = 16;
  shape.spec.cache_type = DataType::kF16;
  shape.block = 5;
  shape.sequences = {{1, 20, 20}};
  CachedCase problem(shape);
  problem.run(Threads::serial());
  const std::vector<float> expected = problem.out();
  CachedAttentionArgs attention_args = problem.args();
  std::vector<float> keys, values;
  for (std::int64_t p = 0; p < 20; ++p) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 16; ++d) keys.push_back(problem.key_at(0, p, h, d));
      for (std::int64_t d = 0; d < 16; ++d) values.push_back(problem.value_at(0, p, h, d));
      problem.write_key(0, p, h, std::numeric_limits<float>::quiet_NaN());
      problem.write_value(0, p, h, std::numeric_limits<float>::quiet_NaN());
    }
  }
  for (const std::int32_t end : {12, 20}) {
    const std::int32_t begin = end == 12 ? 0 : 12;
    const std::vector<std::int32_t> starts = {0, end - begin}, lengths = {end};
    AppendArgs args;
    args.key = view_of(std::as_const(keys).data() + begin * 32, {end - begin, 2, 16});
    args.value = view_of(std::as_const(values).data() + begin * 32, {end - begin, 2, 16});
    args.query_starts = view_of(starts.data(), {2});
    args.lengths = view_of(lengths.data(), {1});
    append(args, attention_args.cache, Threads::serial());
  }
  problem.run(Threads::serial());
  EXPECT_EQ(problem.out(), expected);
}

TEST(Append, AllocatesNothing) {
  AppendShape shape;
  shape.norm = shape.weights = true;
  shape.rotary_dim = 8;
  AppendCase problem(shape);
  problem.run();
  const AllocationCounter counter;
  problem.run();
  EXPECT_EQ(counter.count(), 0);
}

TEST(Append, RefusesWhatDoesNotFitBeforeItWrites) {
  const auto message = [](const AppendShape& shape, auto spoil) -> std::string {
    AppendCase problem(shape);
    const ConstTensorView key = problem.cache.key;
    spoil(problem);
    try {
      problem.run();
    } catch (const Error& error) {
      for (std::int64_t i = 0; i < key.count(); ++i) EXPECT_TRUE(std::isnan(key.as<float>()[i]));
      return error.what();
    }
    return "nothing was refused";
  };
  AppendShape shape;
  shape.rotary_dim = 8;
  shape.norm = shape.weights = true;
  EXPECT_EQ(message(shape, [](auto& p) { p.args.key = {}, p.args.value = {}, p.args.query = {}; }),
            "key is absent, and query too");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.value = {}; }), "value is absent, but key is given");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.key = {}; }), "value is given, but key is absent");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.value = p.args.value.sliced(1, 0, 1); }),
            "value has 1 heads, expected 2");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.query = p.args.query.sliced(0, 0, 8); }),
            "query has dims [8, 4, 20], expected [9, 4, 20]");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.lengths = {}, p.args.query_starts = {}; }),
            "lengths is absent, and slot_mapping too");
  EXPECT_EQ(message(shape, [](auto& p) { p.cache.value = p.cache.value.sliced(2, 0, 9); }),
            "cache.value has dims [4, 2, 9, 12], expected [4, 2, 14, 12]");
  AppendShape far = shape;
  far.lengths[1] = 15;
  EXPECT_EQ(message(far, [](auto&) {}), "lengths[1] is 15, expected at most 14 rows of the cache");
  AppendShape few = shape;
  few.lengths[0] = 2;
  EXPECT_EQ(message(few, [](auto&) {}), "query_starts gives sequence 0 3 tokens, expected at most lengths[0] = 2");
  AppendShape wide = shape;
  wide.rotary_dim = 22;
  EXPECT_EQ(message(wide, [](auto&) {}), "rotary turns 22 dimensions, expected at most 20 of key");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.norm.key_weight = p.args.norm.key_weight.sliced(0, 0, 19); }),
            "norm.key_weight has dims [19], expected [20]");
  std::vector<std::int32_t> far_away = {0, 1, 2, 3, 4, 64, 6, 7, 8};
  EXPECT_EQ(message(shape, [&](auto& p) { p.args.positions = view_of(std::as_const(far_away).data(), {9}); }),
            "positions[5] gives position 64, expected 0 to 63 of rotary");
  EXPECT_EQ(message(shape,
                    [&](auto& p) {
                      p.args.lengths = {}, p.args.query_starts = {}, p.args.rotary = nullptr;
                      p.args.slot_mapping = view_of(std::as_const(far_away).data(), {9});
                    }),
            "slot_mapping[5] is 64, expected -1 to 55");
  EXPECT_EQ(message(shape, [](auto& p) { p.args.key.data = p.cache.key.data; }).substr(0, 22),
            "cache.key overlaps key");
}

}  // namespace
}  // namespace headway::testing
