// The layer over a cache: chunks, decodes and mixed batches give what the whole sequence gives in double; the same bits
// on any threads and, when asked for, in any batch; no allocation; nothing written by a call that is refused. Rotation
// and norms are held by the decoders of tools/engine, against transformers.
#include "headway/cached_multi_head_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/base/numeric.h"
#include "ops/reference/reference_mha.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/runtime/error_of.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kWidth = 40, kQueryHeads = 6, kKeyHeads = 2, kHeadDim = 16, kBlock = 4, kMostTokens = 64;

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed, float scale = 1) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = scale * random.normal();
  return values;
}

/// Weights of one layer, by default with a value as wide as the key.
struct LayerWeights {
  explicit LayerWeights(std::int64_t value_width = kHeadDim)
      : value_dim(value_width),
        query(random_floats(kQueryHeads * kHeadDim * kWidth, 1, 0.25f)),
        key(random_floats(kKeyHeads * kHeadDim * kWidth, 2, 0.25f)),
        value(random_floats(kKeyHeads * value_width * kWidth, 3, 0.25f)),
        output(random_floats(kWidth * kQueryHeads * value_width, 4, 0.25f)),
        query_bias(random_floats(kQueryHeads * kHeadDim, 5)),
        output_bias(random_floats(kWidth, 6)) {}

  /// For either kind of layer: the names are the same.
  template <class Weights>
  Weights view() const {
    Weights w;
    w.query = view_of(query.data(), {kQueryHeads * kHeadDim, kWidth});
    w.key = view_of(key.data(), {kKeyHeads * kHeadDim, kWidth});
    w.value = view_of(value.data(), {kKeyHeads * value_dim, kWidth});
    w.output = view_of(output.data(), {kWidth, kQueryHeads * value_dim});
    w.query_bias = view_of(query_bias.data(), {kQueryHeads * kHeadDim});
    w.output_bias = view_of(output_bias.data(), {kWidth});
    return w;
  }

  std::int64_t value_dim;
  std::vector<float> query, key, value, output, query_bias, output_bias;
};

CachedMultiHeadAttentionSpec layer_spec(std::int64_t value_dim = kHeadDim, bool invariant = false) {
  CachedMultiHeadAttentionSpec spec;
  spec.attention.num_heads = kQueryHeads;
  spec.attention.num_kv_heads = kKeyHeads;
  spec.attention.head_dim = kHeadDim;
  spec.attention.value_head_dim = value_dim;
  spec.attention.batch_invariant = invariant;
  spec.attention.max_batch = 4;
  spec.attention.max_tokens = kMostTokens;
  spec.attention.max_cache = 64;
  spec.embed_dim = kWidth;
  return spec;
}

/// A paged cache of four sequences whose blocks alternate.
struct PagedCache {
  explicit PagedCache(std::int64_t value_dim = kHeadDim)
      : key(DataType::kF32, {64, kKeyHeads, kBlock, kHeadDim}),
        value(DataType::kF32, {64, kKeyHeads, kBlock, value_dim}) {
    for (std::int32_t s = 0; s < 4; ++s) {
      for (std::int32_t b = 0; b < 16; ++b) table.push_back(63 - (b * 4 + s));
    }
  }
  Tensor key, value;
  std::vector<std::int32_t> table;
};

/// Sequence s has inputs of its own; `calls` says how many tokens of which sequence each call takes.
class Runner {
 public:
  explicit Runner(std::int64_t value_dim = kHeadDim, bool invariant = false)
      : weights_(value_dim),
        layer_(layer_spec(value_dim, invariant), weights_.view<CachedMultiHeadAttentionWeights>()),
        cache_(value_dim) {
    for (std::size_t s = 0; s < 4; ++s) {
      inputs_.push_back(random_floats(64 * kWidth, 100 + s));
      outputs_.emplace_back();
    }
  }

  struct Part {
    std::size_t sequence;
    std::int64_t tokens;
  };
  void call(const std::vector<Part>& parts, const Threads& threads = Threads::serial()) {
    std::vector<float> x;
    std::vector<std::int32_t> starts = {0}, lengths, table;
    for (const Part& part : parts) {
      const auto& in = inputs_[part.sequence];
      const auto done = static_cast<std::ptrdiff_t>(outputs_[part.sequence].size());
      x.insert(x.end(), in.begin() + done, in.begin() + done + part.tokens * kWidth);
      starts.push_back(starts.back() + static_cast<std::int32_t>(part.tokens));
      lengths.push_back(static_cast<std::int32_t>(done / kWidth + part.tokens));
      const auto row = cache_.table.begin() + static_cast<std::ptrdiff_t>(16 * part.sequence);
      table.insert(table.end(), row, row + 16);
    }
    std::vector<float> out(x.size());
    CachedMultiHeadAttentionArgs args = args_of(x, starts, lengths, table, &out);
    const AlignedBuffer workspace(layer_.workspace_bytes(threads.workers()));
    layer_.run(args, workspace.data(), threads);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& to = outputs_[parts[i].sequence];
      to.insert(to.end(), out.begin() + starts[i] * kWidth, out.begin() + starts[i + 1] * kWidth);
    }
  }
  CachedMultiHeadAttentionArgs args_of(const std::vector<float>& x, const std::vector<std::int32_t>& starts,
                                       const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& table,
                                       std::vector<float>* out) {
    const auto tokens = static_cast<std::int64_t>(x.size()) / kWidth, batch = static_cast<std::int64_t>(lengths.size());
    CachedMultiHeadAttentionArgs args;
    args.x = view_of(x.data(), {tokens, kWidth});
    args.attention.query_starts = view_of(starts.data(), {batch + 1});
    args.attention.lengths = view_of(lengths.data(), {batch});
    args.cache.key = cache_.key.view();
    args.cache.value = cache_.value.view();
    args.cache.block_table = view_of(table.data(), {batch, 16});
    args.out = view_of(out->data(), {tokens, kWidth});
    return args;
  }

  const std::vector<float>& output(std::size_t sequence) const { return outputs_[sequence]; }
  const CachedMultiHeadAttention& layer() const { return layer_; }
  PagedCache& cache() { return cache_; }

  /// The largest error of a sequence's outputs so far against the whole of it in double, in ε of what it adds up.
  double worst_error(std::size_t sequence) const {
    const auto tokens = static_cast<std::int64_t>(outputs_[sequence].size()) / kWidth;
    MultiHeadAttentionSpec spec;
    spec.causal = Causal::kTopLeft;
    spec.query_len = tokens;
    spec.embed_dim = kWidth;
    spec.num_heads = kQueryHeads;
    spec.num_kv_heads = kKeyHeads;
    spec.head_dim = kHeadDim;
    spec.value_head_dim = weights_.value_dim;
    spec.self_attention = true;
    Tensor exact(DataType::kF64, {1, tokens, kWidth});
    MultiHeadAttentionArgs args;
    args.query = view_of(inputs_[sequence].data(), {1, tokens, kWidth});
    args.out = exact.view();
    reference_multi_head_attention(spec, weights_.view<MultiHeadAttentionWeights>(), args);
    double worst = 0;
    for (std::size_t i = 0; i < outputs_[sequence].size(); ++i) {
      worst = std::max(worst, std::abs(outputs_[sequence][i] - exact.data<double>()[i]));
    }
    return worst;
  }

 private:
  LayerWeights weights_;
  CachedMultiHeadAttention layer_;
  PagedCache cache_;
  std::vector<std::vector<float>> inputs_, outputs_;
};

TEST(CachedMultiHeadAttention, ChunksDecodesAndMixturesAreTheWholeSequence) {
  for (const std::int64_t value_dim : {kHeadDim, std::int64_t{8}, std::int64_t{24}}) {
    Runner runner(value_dim);
    runner.call({{0, 13}, {1, 1}});
    runner.call({{2, 30}, {0, 1}, {1, 1}});
    for (int step = 0; step < 5; ++step) runner.call({{1, 1}, {0, 1}, {2, 1}});
    runner.call({{3, 7}, {1, 9}, {0, 1}, {2, 4}});
    for (const std::size_t s : {0, 1, 2, 3}) {
      ASSERT_GE(runner.output(s).size(), 7 * kWidth);
      // Outputs are of the order of 5; some hundred roundings on the way.
      EXPECT_LT(runner.worst_error(s), 2e-5) << "sequence " << s << ", values of " << value_dim;
    }
  }
}

TEST(CachedMultiHeadAttention, TheSameBitsOnAnyThreads) {
  Runner serial, many;
  for (int step = 0; step < 4; ++step) {
    const std::vector<Runner::Part> parts = {{0, step == 0 ? 21 : 1}, {1, 3}, {2, 8}};
    serial.call(parts);
    many.call(parts, Threads::openmp(3));
  }
  for (const std::size_t s : {0, 1, 2}) EXPECT_EQ(serial.output(s), many.output(s));
}

TEST(CachedMultiHeadAttention, BatchInvariantTokensAreTheirSequencesAlone) {
  Runner alone(kHeadDim, true), mixed(kHeadDim, true), loose_alone, loose_mixed;
  const auto run = [](Runner* whole, Runner* parts) {
    for (const std::size_t s : {0, 1, 2}) whole->call({{s, 40}});
    parts->call({{0, 11}, {2, 30}});
    parts->call({{1, 20}, {0, 1}, {2, 9}});
    parts->call({{0, 28}, {2, 1}, {1, 20}});
  };
  run(&alone, &mixed);
  for (const std::size_t s : {0, 1, 2}) EXPECT_EQ(alone.output(s), mixed.output(s)) << "sequence " << s;
  // Without being asked for it is not so, or this test could not fail.
  run(&loose_alone, &loose_mixed);
  EXPECT_NE(loose_alone.output(2), loose_mixed.output(2));
}

TEST(CachedMultiHeadAttention, Bf16WeightsGiveTheBitsOfTheSameNumbers) {
  LayerWeights wide;
  std::vector<std::vector<BFloat16>> narrow;
  auto of_narrow = wide.view<CachedMultiHeadAttentionWeights>();
  const auto halve = [&](std::vector<float>* values, ConstTensorView* view) {
    std::vector<BFloat16>& half = narrow.emplace_back();
    for (float& v : *values) v = widen(half.emplace_back(to_bfloat16(v)));
    *view = view_of(std::as_const(half).data(), view->dims);
  };
  halve(&wide.query, &of_narrow.query);
  halve(&wide.key, &of_narrow.key);
  halve(&wide.value, &of_narrow.value);
  halve(&wide.output, &of_narrow.output);
  halve(&wide.query_bias, &of_narrow.query_bias);
  const auto of_wide = wide.view<CachedMultiHeadAttentionWeights>();

  const auto run = [](const CachedMultiHeadAttentionWeights& weights) {
    const CachedMultiHeadAttention layer(layer_spec(), weights);
    Runner runner;  // for its cache and arguments
    const std::vector<float> x = random_floats(5 * kWidth, 9);
    std::vector<float> out(x.size());
    const AlignedBuffer workspace(layer.workspace_bytes(1));
    layer.run(runner.args_of(x, {0, 5}, {5}, runner.cache().table, &out), workspace.data(), Threads::serial());
    return out;
  };
  EXPECT_EQ(run(of_narrow), run(of_wide));
  of_narrow.value = of_wide.value;
  expect_contains(error_of([&] { CachedMultiHeadAttention(layer_spec(), of_narrow); }),
                  "value weight is f32, expected bf16 as query's");
}

TEST(CachedMultiHeadAttention, TheResidualIsAdded) {
  Runner plain;
  plain.call({{0, 5}});
  Runner added;
  std::vector<float> x = random_floats(64 * kWidth, 100), out = random_floats(5 * kWidth, 9);
  x.resize(5 * kWidth);
  const std::vector<float> residual = out;
  CachedMultiHeadAttentionArgs args = added.args_of(x, {0, 5}, {5}, added.cache().table, &out);
  const std::vector<std::int32_t> starts = {0, 5}, lengths = {5};
  args.attention.query_starts = view_of(starts.data(), {2});
  args.attention.lengths = view_of(lengths.data(), {1});
  args.cache.block_table = view_of(std::as_const(added.cache().table).data(), {1, 16});
  args.residual = args.out;
  const AlignedBuffer workspace(added.layer().workspace_bytes(1));
  added.layer().run(args, workspace.data(), Threads::serial());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], plain.output(0)[i] + residual[i]);
}

TEST(CachedMultiHeadAttention, StepsOfAnyLengthAllocateNothing) {
  Runner runner;
  const std::vector<float> x = random_floats(20 * kWidth, 1);
  std::vector<float> out(x.size());
  const AlignedBuffer workspace(runner.layer().workspace_bytes(1));
  const AllocationCounter counter;
  for (std::int32_t length = 1; length < 60; ++length) {
    const std::int32_t count = 1 + length % 3;
    if (count > length) continue;
    const std::int32_t starts[] = {0, count}, lengths[] = {length};
    CachedMultiHeadAttentionArgs args;
    args.x = view_of(x.data(), {count, kWidth});
    args.attention.query_starts = view_of(static_cast<const std::int32_t*>(starts), {2});
    args.attention.lengths = view_of(static_cast<const std::int32_t*>(lengths), {1});
    args.cache.key = runner.cache().key.view();
    args.cache.value = runner.cache().value.view();
    args.cache.block_table = view_of(std::as_const(runner.cache().table).data(), {1, 16});
    args.out = view_of(out.data(), {count, kWidth});
    runner.layer().run(args, workspace.data(), Threads::serial());
  }
  EXPECT_EQ(counter.count(), 0);
}

TEST(CachedMultiHeadAttention, ARefusedCallWritesNothing) {
  Runner runner;
  const std::vector<float> x = random_floats(5 * kWidth, 1);
  std::vector<float> out(x.size(), 7.0f);
  std::fill_n(runner.cache().key.data<float>(), runner.cache().key.count(), 3.0f);
  const std::vector<std::int32_t> starts = {0, 5}, lengths = {5}, table = runner.cache().table;
  const AlignedBuffer workspace(runner.layer().workspace_bytes(1));
  const auto refused = [&](const auto& change) {
    CachedMultiHeadAttentionArgs args = runner.args_of(x, starts, lengths, table, &out);
    args.cache.block_table = view_of(table.data(), {1, 16});
    change(&args);
    const std::string message = error_of([&] { runner.layer().run(args, workspace.data(), Threads::serial()); });
    const float* const keys = runner.cache().key.data<float>();
    EXPECT_TRUE(std::all_of(keys, keys + runner.cache().key.count(), [](float k) { return k == 3.0f; })) << message;
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float v) { return v == 7.0f; })) << message;
    return message;
  };
  const std::vector<std::int32_t> longer = {66}, sinks = {0};
  std::vector<float> narrow(5 * kWidth);
  using Args = CachedMultiHeadAttentionArgs;
  expect_contains(refused([&](Args* a) { a->attention.lengths = view_of(longer.data(), {1}); }), "66");
  expect_contains(refused([&](Args* a) { a->x = a->x.sliced(1, 0, 39); }), "x has dims [5, 39], expected [5, 40]");
  expect_contains(refused([&](Args* a) { a->out = a->out.sliced(0, 0, 4); }), "out has dims [4, 40], expected [5, 40]");
  expect_contains(refused([&](Args* a) { a->attention.query = a->x; }), "attention.query");
  expect_contains(refused([&](Args* a) { a->attention.sinks = view_of(x.data(), {4}); }), "sinks");
  expect_contains(refused([&](Args* a) { a->residual = a->out.sliced(0, 0, 4); }), "residual");
  expect_contains(refused([&](Args* a) {
                    a->out = TensorView(runner.cache().key.view().data, DataType::kF32, {5, kWidth});
                  }),
                  "cache.key");
}

TEST(CachedMultiHeadAttention, WeightsThatDoNotFitAreNamed) {
  const LayerWeights weights;
  CachedMultiHeadAttentionWeights given = weights.view<CachedMultiHeadAttentionWeights>();
  given.value = given.query;
  expect_contains(error_of([&] { CachedMultiHeadAttention(layer_spec(), given); }),
                  "value weight has dims [96, 40], expected [32, 40]");
  CachedMultiHeadAttentionSpec spec = layer_spec();
  given = weights.view<CachedMultiHeadAttentionWeights>();
  spec.norm.enabled = true;
  spec.norm.key_weight = view_of(weights.output_bias.data(), {kHeadDim + 1});
  expect_contains(error_of([&] { CachedMultiHeadAttention(spec, given); }),
                  "norm.key_weight has dims [17], expected [16]");
  spec.norm.enabled = false;
  const RotaryTable wide({kHeadDim + 2, 8, 10000, false, {}});
  spec.rotary = &wide;
  expect_contains(error_of([&] { CachedMultiHeadAttention(spec, given); }),
                  "rotary turns 18 dimensions, expected at most head_dim = 16");
  spec.attention.type = DataType::kBF16;
  expect_contains(error_of([&] { CachedMultiHeadAttention(spec, given); }, ErrorCode::kUnsupported),
                  "attention.type is bf16, expected f32");
}

}  // namespace
}  // namespace headway::testing
