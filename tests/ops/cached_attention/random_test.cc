// Random calls of every kind against the oracle, on every SIMD target.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/ops/cached_attention/cached_case.h"
#include "tests/ops/simd/tile_case.h"
#include "tests/runtime/sanitizers.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

std::string describe(const CachedShape& s) {
  std::string text = std::string(type_name(s.spec.type)) + " over " + type_name(s.spec.cache_type) + ", heads " +
                     std::to_string(s.spec.num_heads) + "/" + std::to_string(*s.spec.num_kv_heads) + ", D " +
                     std::to_string(s.spec.head_dim) + "/" + std::to_string(*s.spec.value_head_dim) + ", block " +
                     std::to_string(s.block) + ", ring " + std::to_string(s.ring) + ", window " +
                     std::to_string(s.spec.window.left) + "/" + std::to_string(s.spec.window.right) + ", causal " +
                     std::to_string(s.spec.causal) + ", invariant " + std::to_string(s.spec.batch_invariant) +
                     ", softcap " + std::to_string(s.spec.softcap) + ", sinks " + std::to_string(s.sinks) + ", alibi " +
                     std::to_string(s.alibi) + ", relative " + std::to_string(s.relative_bias) + ", mask " +
                     std::to_string(static_cast<int>(s.mask)) + (s.tree ? " of a tree" : "");
  for (const CachedSequence& q : s.sequences) {
    text += ", " + std::to_string(q.tokens) + " of " + std::to_string(q.length);
  }
  return text;
}

CachedShape random_shape(Random& random) {
  CachedShape shape;
  CachedAttentionSpec& spec = shape.spec;
  spec.type = random.pick({DataType::kF32, DataType::kF32, DataType::kBF16, DataType::kF16});
  spec.cache_type = random.pick({DataType::kF32, DataType::kF32, DataType::kBF16, DataType::kF16});
  spec.num_kv_heads = random.between(1, 3);
  spec.num_heads = *spec.num_kv_heads * random.pick<std::int64_t>({1, 2, 3, 4, 8, 16});
  spec.head_dim = random.pick<std::int64_t>({1, 7, 16, 24, 64, 80});
  spec.value_head_dim = random.chance(0.7) ? spec.head_dim : random.pick<std::int64_t>({5, 16, 33, 128});
  spec.causal = random.chance(0.8);
  if (random.chance(0.3)) spec.softcap = 2.5f;
  if (random.chance(0.2)) spec.scale = 0.3f;
  if (random.chance(0.3)) spec.window.left = random.between(0, 200);
  if (!spec.causal && random.chance(0.3)) spec.window.right = random.between(0, 20);
  spec.batch_invariant = random.chance(0.4);
  const std::int64_t batch = random.between(0, 5);
  bool single = true;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = random.pick<std::int64_t>(
        {0, 1, 5, random.between(1, 64), random.between(1, 300), random.chance(0.1) ? random.between(1000, 2600) : 70});
    std::int64_t tokens = random.chance(0.6) ? 1 : random.pick<std::int64_t>({0, 2, 4, 17, random.between(1, 60)});
    // More tokens than positions, where some come before position 0, are rare.
    if (!random.chance(0.1)) tokens = std::min(tokens, length);
    single = single && tokens == 1;
    shape.sequences.push_back({random.next() % 1000, tokens, length});
  }
  shape.query_starts = !single || random.chance(0.5);
  shape.block = random.pick<std::int64_t>({0, 0, 1, 3, 16, 20, 64, 128});
  if (random.chance(0.2)) shape.ring = random.between(1, 200);
  shape.heads_inside = random.chance(0.5);
  shape.slots = random.chance(0.5);
  shape.sinks = random.chance(0.3);
  shape.alibi = random.chance(0.2);
  shape.relative_bias = random.chance(0.2);
  shape.mask =
      random.chance(0.6) ? CachedMask::kNone : random.pick({CachedMask::kBool, CachedMask::kFloat, CachedMask::kBits});
  shape.tree = random.chance(0.5);
  shape.out_is_query = spec.head_dim == *spec.value_head_dim && random.chance(0.3);
  return shape;
}

TEST(CachedAttentionRandom, EveryRowIsWithinItsBound) {
  double worst = 0;
  on_every_target([&](const std::string& target) {
    Random random(2026);
    for (int n = 0; n < sanitized_share(400); ++n) {
      const CachedShape shape = random_shape(random);
      CachedCase problem(shape);
      problem.run(Threads::openmp(1 + n % 3));
      ASSERT_EQ(problem.compare(&worst), "") << target << ", case " << n << ": " << describe(shape);
    }
  });
  std::printf("worst ratio to the bound: %.3f\n", worst);
  EXPECT_GT(worst, 0);
}

}  // namespace
}  // namespace headway::testing
