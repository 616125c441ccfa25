// What must not change a bit: the number of workers, where rows lie in memory, and with batch_invariant the rest of the
// batch and how a prefill was cut.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/ops/cached_attention/cached_case.h"
#include "tests/ops/simd/tile_case.h"
#include "tests/runtime/sanitizers.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

/// Rows of all heads of a token, with their log_sum_exp, by sequence and position.
using Rows = std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<float>>;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Rows rows_of(const CachedShape& shape, int workers = 2) {
  CachedCase problem(shape);
  problem.run(Threads::openmp(workers));
  const std::vector<float> out = problem.out();
  const std::int64_t heads = shape.spec.num_heads;
  const std::int64_t width = heads * shape.spec.value_head_dim.value_or(shape.spec.head_dim);
  Rows rows;
  for (std::size_t b = 0; b < shape.sequences.size(); ++b) {
    const CachedSequence& s = shape.sequences[b];
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      const std::int64_t token = problem.first_token(b) + i;
      std::vector<float>& row = rows[{s.id, s.length - s.tokens + i}];
      row.assign(out.begin() + token * width, out.begin() + (token + 1) * width);
      const auto logs = problem.log_sum_exp().begin() + token * heads;
      row.insert(row.end(), logs, logs + heads);
    }
  }
  return rows;
}

/// The rows that both have are the same, and there are some.
void expect_same(const Rows& got, const Rows& expected, const std::string& what) {
  std::int64_t compared = 0;
  for (const auto& [key, row] : got) {
    const auto other = expected.find(key);
    if (other == expected.end()) continue;
    ++compared;
    ASSERT_TRUE(same_bits(row, other->second)) << what << ": sequence " << key.first << ", position " << key.second;
  }
  EXPECT_GT(compared, 0) << what;
}

CachedShape mixed_batch() {
  CachedShape shape;
  shape.spec.num_heads = 8;
  shape.spec.num_kv_heads = 2;
  shape.spec.head_dim = 32;
  shape.sequences = {{1, 1, 700}, {2, 40, 40}, {3, 1, 1}, {4, 4, 333}, {5, 1, 2500}, {6, 40, 300}};
  return shape;
}

TEST(CachedAttentionBits, AreTheSameAtAnyNumberOfWorkers) {
  on_every_target([&](const std::string& target) {
    for (const bool invariant : {false, true}) {
      CachedShape shape = mixed_batch();
      shape.spec.batch_invariant = invariant;
      const Rows expected = rows_of(shape, 1);
      for (const int workers : {2, 3, 8}) {
        expect_same(rows_of(shape, workers), expected, target + " " + std::to_string(workers));
      }
    }
  });
}

TEST(CachedAttentionBits, DoNotDependOnWhereRowsLie) {
  on_every_target([&](const std::string& target) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      for (const bool invariant : {false, true}) {
        CachedShape shape = mixed_batch();
        shape.spec.cache_type = type;
        shape.spec.batch_invariant = invariant;
        const Rows expected = rows_of(shape);
        const auto compare = [&](const std::string& what) {
          expect_same(rows_of(shape), expected, target + " " + type_name(type) + " " + what);
        };
        shape.heads_inside = true;
        compare("heads inside");
        shape.slots = true;
        compare("slots");
        for (const std::int64_t block : {1, 3, 16, 64}) {
          shape.block = block;
          compare("blocks of " + std::to_string(block));
        }
        shape.block = 0;
        shape.ring = 2600;  // nothing is overwritten yet
        compare("ring");
      }
    }
  });
}

TEST(CachedAttentionBits, OfARingThatIsWrappedAreThoseOfAWindow) {
  for (const bool invariant : {false, true}) {
    CachedShape shape = mixed_batch();
    shape.spec.batch_invariant = invariant;
    shape.spec.window.left = 99;
    shape.sequences = {{1, 1, 700}, {2, 4, 333}, {3, 30, 1000}, {4, 1, 90}, {5, 129, 129}};
    const Rows expected = rows_of(shape);
    for (const std::int64_t block : {0, 16}) {
      shape.block = block;
      shape.ring = 240;  // the window and the tokens of a call
      expect_same(rows_of(shape), expected, "ring, block " + std::to_string(block));
    }
  }
}

CachedShape one_sequence(const CachedShape& like, const CachedSequence& sequence) {
  CachedShape shape = like;
  shape.sequences = {sequence};
  // The object that served the batch: its bounds stay.
  shape.spec.max_batch = 8, shape.spec.max_tokens = 4096, shape.spec.max_cache = 4096;
  return shape;
}

TEST(CachedAttentionInvariant, ARowAloneIsTheRowInAnyBatch) {
  on_every_target([&](const std::string& target) {
    Random random(11);
    for (int n = 0; n < 6; ++n) {
      CachedShape shape = mixed_batch();
      shape.spec.batch_invariant = true;
      shape.spec.head_dim = random.pick<std::int64_t>({16, 64, 80, 300});
      shape.spec.value_head_dim = random.pick<std::int64_t>({16, 128});
      shape.spec.type = random.pick({DataType::kF32, DataType::kBF16, DataType::kF16});
      shape.spec.cache_type = random.pick({DataType::kF32, DataType::kBF16, DataType::kF16});
      if (n % 3 == 1) shape.spec.window.left = 150;
      if (n % 3 == 2) shape.spec.softcap = 3, shape.alibi = true, shape.sinks = true;
      if (n % 2 == 1) shape.mask = CachedMask::kBits, shape.tree = true;
      const Rows batch = rows_of(shape);
      for (const CachedSequence& s : shape.sequences) {
        CachedShape alone = one_sequence(shape, s);
        alone.block = random.pick<std::int64_t>({0, 16, 5});
        expect_same(rows_of(alone), batch, target + " case " + std::to_string(n));
      }
    }
  });
}

TEST(CachedAttentionInvariant, APrefillInChunksIsTheWholePrefill) {
  on_every_target([&](const std::string& target) {
    for (const auto& [kv_heads, window] : {std::pair<std::int64_t, std::int64_t>{1, -1}, {8, -1}, {8, 301}}) {
      CachedShape shape;
      shape.spec.window.left = window;
      shape.spec.batch_invariant = true;
      shape.spec.num_heads = 8;
      shape.spec.num_kv_heads = kv_heads;
      shape.spec.head_dim = 24;
      const std::int64_t length = kAddressSanitizer || kThreadSanitizer ? 600 : 1100;  // spans are of 256
      const Rows whole = rows_of(one_sequence(shape, {9, length, length}));
      for (const std::int64_t chunk : {1, 7, 64, 256, 500}) {
        // The whole walk for the larger chunks, some of it for the small ones.
        const std::int64_t step = chunk < 64 ? 97 : chunk;
        for (std::int64_t end = chunk; end <= length; end += step) {
          expect_same(rows_of(one_sequence(shape, {9, chunk, end})), whole,
                      target + ", chunk of " + std::to_string(chunk) + " to " + std::to_string(end));
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(CachedAttentionInvariant, WithoutItABatchMayChangeBits) {
  // Not a promise, but what makes the tests above mean something: the rows differ where nobody asked for invariance.
  CachedShape shape = mixed_batch();
  const Rows batch = rows_of(shape);
  int differing = 0;
  for (const CachedSequence& s : shape.sequences) {
    for (const auto& [key, row] : rows_of(one_sequence(shape, {s.id, s.length, s.length}))) {
      const auto other = batch.find(key);
      if (other != batch.end() && !same_bits(row, other->second)) ++differing;
    }
  }
  EXPECT_GT(differing, 0);
}

}  // namespace
}  // namespace headway::testing
