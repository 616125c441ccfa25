// Every wrong argument is refused with a message that names it and both numbers, before out is written.
#include <gtest/gtest.h>

#include <functional>

#include "headway/error.h"
#include "tests/ops/cached_attention/cached_case.h"

namespace headway::testing {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

struct Refusal {
  std::string expected;  // the whole message
  std::function<void(CachedAttentionArgs&)> spoil;
};

class CachedAttentionRefusals : public ::testing::Test {
 protected:
  static CachedShape shape(std::int64_t block) {
    CachedShape shape;
    shape.spec.num_heads = 4;
    shape.spec.num_kv_heads = 2;
    shape.spec.head_dim = 8;
    shape.spec.max_tokens = 6;
    shape.spec.max_batch = 3;
    shape.spec.max_cache = 40;
    shape.sequences = {{1, 2, 30}, {2, 1, 17}};
    shape.block = block;
    return shape;
  }
  void check(std::int64_t block, const std::vector<Refusal>& refusals) {
    for (const Refusal& refusal : refusals) {
      CachedCase problem(shape(block));
      const CachedAttention attention(problem.shape().spec);
      const AlignedBuffer workspace(attention.workspace_bytes(1));
      CachedAttentionArgs args = problem.args();
      std::fill_n(args.out.as<float>(), args.out.count(), 77.0f);
      const TensorView out = args.out;
      refusal.spoil(args);
      EXPECT_EQ(message_of([&] { attention.run(args, workspace.data(), Threads::serial()); }), refusal.expected);
      EXPECT_EQ(message_of([&] { attention.plan(args); }), refusal.expected);
      for (std::int64_t i = 0; i < out.count(); ++i) EXPECT_EQ(out.as<float>()[i], 77) << refusal.expected;
    }
  }

  std::vector<std::int32_t> integers_ = std::vector<std::int32_t>(64);
  std::vector<float> floats_ = std::vector<float>(1 << 12);
};

TEST_F(CachedAttentionRefusals, OfQueryAndOut) {
  check(
      0,
      {{"query is absent, expected f32 [tokens, 4, 8]", [](auto& a) { a.query = {}; }},
       {"query has rank 2, expected 3", [](auto& a) { a.query = a.query.selected(0, 0); }},
       {"query is bf16, expected f32", [](auto& a) { a.query.type = DataType::kBF16; }},
       {"query has dims [3, 4, 7], expected [3, 4, 8]", [](auto& a) { a.query = a.query.sliced(2, 0, 7); }},
       {"query has innermost stride 2, expected 1", [](auto& a) { a.query.strides[2] = 2; }},
       {"query is null, expected [3, 4, 8] elements", [](auto& a) { a.query.data = nullptr; }},
       {"query has 7 tokens, expected at most max_tokens = 6",
        [&](auto& a) {
          a.query = view_of(floats_.data(), {7, 4, 8});
          a.out = view_of(floats_.data() + 500, {7, 4, 8});
          a.log_sum_exp = {};
        }},
       {"out is absent, expected f32 [3, 4, 8]", [](auto& a) { a.out = {}; }},
       {"out has dims [2, 4, 8], expected [3, 4, 8]", [](auto& a) { a.out = a.out.sliced(0, 0, 2); }},
       {"out overlaps itself: axis 0 has stride 31, expected at least 32", [](auto& a) { a.out.strides[0] = 31; }},
       {"out overlaps cache.key: of 384 bytes written, 384 are shared", [](auto& a) { a.out.data = a.cache.key.data; }},
       {"out overlaps query: of 384 bytes written, 352 are shared",
        [](auto& a) { a.out.data = const_cast<std::byte*>(a.query.data) + 32; }},
       {"log_sum_exp is bf16, expected f32", [](auto& a) { a.log_sum_exp.type = DataType::kBF16; }},
       {"log_sum_exp has dims [3, 3], expected [3, 4]", [](auto& a) { a.log_sum_exp = a.log_sum_exp.sliced(1, 0, 3); }},
       {"log_sum_exp overlaps out: of 48 bytes written, 48 are shared",
        [](auto& a) { a.log_sum_exp.data = a.out.data; }}});
}

TEST_F(CachedAttentionRefusals, OfSequences) {
  check(0,
        {{"lengths is absent, expected i32 [batch]", [](auto& a) { a.lengths = {}; }},
         {"lengths is i64, expected i32", [](auto& a) { a.lengths.type = DataType::kI64; }},
         {"lengths[1] is -1, expected at least 0",
          [&](auto& a) {
            integers_ = {30, -1};
            a.lengths = view_of(std::as_const(integers_).data(), {2});
          }},
         {"lengths[0] is 41, expected at most max_cache = 40",
          [&](auto& a) {
            integers_ = {41, 1};
            a.lengths = view_of(std::as_const(integers_).data(), {2});
          }},
         {"lengths[0] is 35, expected at most 32 rows of the cache",
          [&](auto& a) {
            integers_ = {35, 1};
            a.lengths = view_of(std::as_const(integers_).data(), {2});
          }},
         {"lengths has 4 sequences, expected at most max_batch = 3",
          [&](auto& a) {
            integers_ = {1, 1, 1, 1, 0, 1, 2, 3, 3};
            a.lengths = view_of(std::as_const(integers_).data(), {4});
            a.query_starts = view_of(std::as_const(integers_).data() + 4, {5});
          }},
         {"query has 3 tokens, expected one for each of 2 sequences, or query_starts",
          [](auto& a) { a.query_starts = {}; }},
         {"query_starts has dims [2], expected [3]", [](auto& a) { a.query_starts = a.query_starts.sliced(0, 0, 2); }},
         {"query_starts[0] is 1, expected 0",
          [&](auto& a) {
            integers_ = {1, 2, 3};
            a.query_starts = view_of(std::as_const(integers_).data(), {3});
          }},
         {"query_starts[2] is 1, expected at least query_starts[1] = 2",
          [&](auto& a) {
            integers_ = {0, 2, 1};
            a.query_starts = view_of(std::as_const(integers_).data(), {3});
          }},
         {"query_starts[2] is 4, expected the tokens = 3", [&](auto& a) {
            integers_ = {0, 2, 4};
            a.query_starts = view_of(std::as_const(integers_).data(), {3});
          }}});
}

TEST_F(CachedAttentionRefusals, OfTheCache) {
  check(0,
        {{"cache.key is absent, expected f32 of rank 4", [](auto& a) { a.cache.key = {}; }},
         {"cache.key has rank 3, expected 4", [](auto& a) { a.cache.key = a.cache.key.selected(0, 0); }},
         {"cache.key is bf16, expected f32", [](auto& a) { a.cache.key.type = DataType::kBF16; }},
         {"cache.key has dims [2, 1, 32, 8], expected [2, 2, 32, 8]",
          [](auto& a) { a.cache.key = a.cache.key.sliced(1, 0, 1); }},
         {"cache.value has dims [2, 2, 31, 8], expected [2, 2, 32, 8]",
          [](auto& a) { a.cache.value = a.cache.value.sliced(2, 0, 31); }},
         {"cache.value has innermost stride 3, expected 1", [](auto& a) { a.cache.value.strides[3] = 3; }},
         {"cache.key_scale is given, but a cache of f32 has no scales", [](auto& a) { a.cache.key_scale = a.query; }},
         {"cache.key has 1 slots, expected at least batch = 2",
          [](auto& a) {
            a.cache.key = a.cache.key.sliced(0, 0, 1);
            a.cache.value = a.cache.value.sliced(0, 0, 1);
          }},
         {"cache.slots[1] is 2, expected 0 to 1",
          [&](auto& a) {
            integers_ = {1, 2};
            a.cache.slots = view_of(std::as_const(integers_).data(), {2});
          }},
         {"cache.slots has dims [3], expected [2]",
          [&](auto& a) { a.cache.slots = view_of(std::as_const(integers_).data(), {3}); }}});
  check(16, {{"cache.block_table is i64, expected i32", [](auto& a) { a.cache.block_table.type = DataType::kI64; }},
             {"cache.block_table has rank 1, expected 2",
              [](auto& a) { a.cache.block_table = a.cache.block_table.selected(0, 0); }},
             {"cache.block_table has dims [1, 2], expected [2, 2]",
              [](auto& a) { a.cache.block_table = a.cache.block_table.sliced(0, 0, 1); }},
             {"cache.slots is given, but cache.block_table says where sequences lie",
              [&](auto& a) { a.cache.slots = view_of(std::as_const(integers_).data(), {2}); }},
             {"lengths[0] is 30, expected at most 16 rows of the cache",
              [](auto& a) { a.cache.block_table = a.cache.block_table.sliced(1, 0, 1); }},
             {"cache.block_table[0][1] is 6, expected 0 to 5", [&](auto& a) {
                integers_ = {0, 6, 1, 2};
                a.cache.block_table = view_of(std::as_const(integers_).data(), {2, 2});
              }}});
}

TEST_F(CachedAttentionRefusals, OfBiases) {
  check(0, {{"sinks has dims [3], expected [4]", [&](auto& a) { a.sinks = view_of(floats_.data(), {3}); }},
            {"alibi_slopes is i32, expected f32",
             [&](auto& a) { a.alibi_slopes = view_of(std::as_const(integers_).data(), {4}); }},
            {"relative_bias has rank 1, expected 2", [&](auto& a) { a.relative_bias = view_of(floats_.data(), {4}); }},
            {"relative_bias has dims [4, 5], expected [4, 4]",
             [&](auto& a) {
               a.relative_bias = view_of(floats_.data(), {4, 5});
             }},
            {"relative_bias has 0 distances, expected at least 1",
             [&](auto& a) {
               a.relative_bias = view_of(floats_.data(), {0, 4});
             }},
            {"relative_bias_future is 4, expected 0 to 3 of relative_bias",
             [&](auto& a) {
               a.relative_bias = view_of(floats_.data(), {4, 4});
               a.relative_bias_future = 4;
             }},
            {"mask is i32, expected f32, bool or u8",
             [&](auto& a) {
               a.mask = view_of(std::as_const(integers_).data(), {3, 4});
             }},
            {"mask has rank 1, expected 2", [&](auto& a) { a.mask = view_of(floats_.data(), {4}); }},
            {"mask has dims [2, 30], expected [3, 30]",
             [&](auto& a) {
               a.mask = view_of(floats_.data(), {2, 30});
             }},
            {"mask_starts is given, but there is no mask",
             [&](auto& a) { a.mask_starts = view_of(std::as_const(integers_).data(), {2}); }},
            {"mask_starts has dims [3], expected [2]", [&](auto& a) {
               a.mask = view_of(floats_.data(), {3, 30});
               a.mask_starts = view_of(std::as_const(integers_).data(), {3});
             }}});
}

TEST_F(CachedAttentionRefusals, OfTheWorkspace) {
  CachedCase problem(shape(0));
  const CachedAttention attention(problem.shape().spec);
  const AlignedBuffer workspace(attention.workspace_bytes(1) + 64);
  EXPECT_EQ(message_of([&] { attention.run(problem.args(), nullptr, Threads::serial()); }),
            "workspace is null, expected " + std::to_string(attention.workspace_bytes(1)) + " bytes for 1 workers");
  EXPECT_EQ(message_of([&] { attention.run(problem.args(), workspace.data() + 4, Threads::serial()); }),
            "workspace is 4 bytes past a multiple of 64, expected 0");
}

TEST(CachedAttentionSpecs, ThatCannotBeAreRefused) {
  const auto refused = [](std::function<void(CachedAttentionSpec&)> spoil) {
    CachedAttentionSpec spec;
    spec.num_heads = 4;
    spec.head_dim = 8;
    spec.max_cache = 10;
    spoil(spec);
    return message_of([&] { CachedAttention attention(spec); });
  };
  EXPECT_EQ(refused([](auto& s) { s.type = DataType::kI8; }),
            "type is i8, which is not supported yet, expected f32, bf16 or f16");
  EXPECT_EQ(refused([](auto& s) { s.cache_type = DataType::kI8; }),
            "cache_type is i8, which is not supported yet, expected f32, bf16 or f16");
  EXPECT_EQ(refused([](auto& s) { s.cache_type = DataType::kF64; }),
            "cache_type is f64, which is not supported, expected f32, bf16 or f16");
  EXPECT_EQ(refused([](auto& s) { s.num_heads = 0; }), "num_heads is 0, expected at least 1");
  EXPECT_EQ(refused([](auto& s) { s.num_kv_heads = 3; }), "num_heads is 4, expected a multiple of num_kv_heads = 3");
  EXPECT_EQ(refused([](auto& s) { s.head_dim = 0; }), "head_dim is 0, expected at least 1");
  EXPECT_EQ(refused([](auto& s) { s.value_head_dim = -2; }), "value_head_dim is -2, expected at least 1");
  EXPECT_EQ(refused([](auto& s) { s.softcap = -1; }), "softcap is -1, expected a finite number of at least 0");
  EXPECT_EQ(refused([](auto& s) { s.scale = 1.0f / 0.0f; }), "scale is inf, expected a finite number");
  EXPECT_EQ(refused([](auto& s) { s.window.left = -2; }), "window.left is -2, expected at least -1");
  EXPECT_EQ(refused([](auto& s) { s.max_batch = -1; }), "max_batch is -1, expected at least 0");
  EXPECT_EQ(refused([](auto& s) { s.max_cache = std::int64_t{1} << 40; }),
            "max_cache is 1099511627776, expected at most 1073741824");
  EXPECT_EQ(refused([](auto&) {}), "nothing was refused");
}

}  // namespace
}  // namespace headway::testing
