// What the layer promises besides its numbers: errors before anything is written, the same bits whoever runs it, no
// allocation, and a host's OpenMP settings left alone.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstring>
#include <thread>
#include <utility>

#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/multi_head_attention/layer_case.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/host_pool.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

LayerShape plain() {
  LayerShape shape;
  shape.spec.batch = 2;
  shape.spec.query_len = 70;
  shape.spec.key_len = 90;
  shape.spec.embed_dim = 96;
  shape.spec.num_heads = 4;
  shape.spec.causal = Causal::kBottomRight;
  return shape;
}

std::vector<float> run(const MultiHeadAttention& mha, LayerCase& layer, const Threads& threads) {
  const AlignedBuffer workspace(mha.workspace_bytes(threads.workers()));
  const MultiHeadAttentionArgs args = layer.args();
  mha.run(args, workspace.data(), threads);
  return LayerCase::values(args.out);
}

struct Way {
  std::string implementation;
  DataType type;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    for (const std::string& implementation : attention_implementations()) ways.push_back({implementation, type});
  }
  return ways;
}

class LayerContract : public ::testing::TestWithParam<Way> {
 protected:
  AttentionOptions options() const { return {.implementation = GetParam().implementation}; }
  static LayerShape plain() {
    LayerShape shape = testing::plain();
    shape.spec.embed_dim = 128;  // heads of 32: as bf16 products want them
    shape.spec.type = GetParam().type;
    return shape;
  }
  void SetUp() override {
    if (!refusal({GetParam().implementation, ""}, LayerCase(plain()).core_spec()).empty()) GTEST_SKIP();
  }
};

TEST_P(LayerContract, SameBitsOnAnyThreads) {
  LayerCase layer(plain());
  const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
  const std::vector<float> expected = run(mha, layer, Threads::serial());
  for (const int workers : {2, 3, 8}) EXPECT_EQ(run(mha, layer, Threads::openmp(workers)), expected) << workers;
  HostPool pool(3);
  EXPECT_EQ(run(mha, layer, pool.threads()), expected);
}

TEST_P(LayerContract, SharesPackedWeightsWithALayerOfOtherSizes) {
  LayerShape shape = plain();
  shape.spec.query_len = 3;  // so few rows that every product takes the way whose layout fits all sizes
  shape.spec.key_len = 4;
  LayerCase layer(shape);
  const std::vector<float> expected =
      run(MultiHeadAttention(layer.spec(), layer.weights(), options()), layer, Threads::serial());
  MultiHeadAttentionSpec other = layer.spec();
  other.batch = 1;
  other.query_len = 1;
  const MultiHeadAttention first(other, layer.weights(), options());
  // Weights of NaN: had any of them been read, it would show.
  MultiHeadAttentionWeights poisoned = layer.weights();
  std::vector<Tensor> memory;
  for (ConstTensorView* view : {&poisoned.query, &poisoned.key, &poisoned.value, &poisoned.output}) {
    memory.emplace_back(view->type, view->dims);
    std::memset(memory.back().view().data, 0xff, tensor_bytes(view->type, view->dims));
    *view = std::as_const(memory.back()).view();
  }
  const MultiHeadAttention second(layer.spec(), poisoned, options(), &first);
  EXPECT_EQ(run(second, layer, Threads::serial()), expected);
}

TEST_P(LayerContract, EightThreadsAtOnce) {
  LayerCase layer(plain());
  const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
  const std::vector<float> expected = run(mha, layer, Threads::serial());
  std::vector<MultiHeadAttentionArgs> args;
  for (int t = 0; t < 8; ++t) args.push_back(layer.args());
  std::vector<std::thread> team;
  for (int t = 0; t < 8; ++t) {
    team.emplace_back([&, t] {
      const Threads threads = Threads::openmp(t % 3 + 1);
      const AlignedBuffer workspace(mha.workspace_bytes(threads.workers()));
      for (int repeat = 0; repeat < 3; ++repeat) mha.run(args[static_cast<std::size_t>(t)], workspace.data(), threads);
    });
  }
  for (std::thread& thread : team) thread.join();
  for (const MultiHeadAttentionArgs& a : args) EXPECT_EQ(LayerCase::values(a.out), expected);
}

TEST_P(LayerContract, InsideAParallelRegionOfTheHost) {
  LayerCase layer(plain());
  const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
  const std::vector<float> expected = run(mha, layer, Threads::serial());
  constexpr int kTeam = 4;
  std::vector<MultiHeadAttentionArgs> args;
  for (int t = 0; t < kTeam; ++t) args.push_back(layer.args());
  int team = 0;  // as many as OpenMP gave
#pragma omp parallel num_threads(kTeam)
  {
#pragma omp single
    team = omp_get_num_threads();
    const Threads threads = Threads::openmp(2);
    const AlignedBuffer workspace(mha.workspace_bytes(threads.workers()));
    mha.run(args[static_cast<std::size_t>(omp_get_thread_num())], workspace.data(), threads);
  }
  for (int t = 0; t < team; ++t) EXPECT_EQ(LayerCase::values(args[static_cast<std::size_t>(t)].out), expected) << t;
}

TEST_P(LayerContract, LeavesTheHostsSettingAlone) {
  LayerCase layer(plain());
  std::thread([&] {
    const int setting = omp_get_max_threads();
    const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
    for (const int workers : {1, 2}) {
      run(mha, layer, Threads::openmp(workers));
      EXPECT_EQ(omp_get_max_threads(), setting);
    }
  }).join();
}

TEST_P(LayerContract, AllocatesNothingOnceWarm) {
  LayerShape shape = plain();
  shape.sequence_first = true;
  shape.bias_kv = true;
  shape.spec.mask = MaskKind::kBool;
  shape.spec.scores_output = ScoresOutput::kMeanProbabilities;
  LayerCase layer(shape);
  if (!refusal({GetParam().implementation, ""}, layer.core_spec()).empty()) GTEST_SKIP();
  const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
  for (const int workers : {1, 2}) {
    const Threads threads = Threads::openmp(workers);
    const AlignedBuffer workspace(mha.workspace_bytes(workers));
    const MultiHeadAttentionArgs args = layer.args();
    for (int i = 0; i < 2; ++i) mha.run(args, workspace.data(), threads);
    const AllocationCounter counter;
    for (int i = 0; i < 5; ++i) mha.run(args, workspace.data(), threads);
    EXPECT_EQ(counter.count(), 0) << workers << " workers";
  }
}

TEST_P(LayerContract, ReportsItsWork) {
  LayerCase layer(plain());
  const MultiHeadAttention mha(layer.spec(), layer.weights(), options());
  Profiler profiler({.workers = 2});
  const Threads threads = Threads::openmp(2);
  const AlignedBuffer workspace(mha.workspace_bytes(2));
  mha.run(layer.args(), workspace.data(), threads, &profiler);
  std::int64_t projections = 0, core = 0;
  for (const Profiler::Row& row : profiler.rows()) {
    if (row.name == "projections" || row.name == "output") projections += row.work.flops_executed;
    if (row.category == "attention") core += row.work.flops_nominal;
  }
  EXPECT_EQ(projections, mha.projection_flops());
  EXPECT_EQ(core, nominal_attention_flops(mha.core().spec()));
}

INSTANTIATE_TEST_SUITE_P(Implementations, LayerContract, ::testing::ValuesIn(all_ways()),
                         [](const auto& test) { return test.param.implementation + "_" + type_name(test.param.type); });

TEST(LayerErrors, SpecsNameBothNumbers) {
  LayerCase layer(plain());
  const auto made = [&](auto change) {
    MultiHeadAttentionSpec spec = layer.spec();
    change(spec);
    return error_of([&] { MultiHeadAttention(spec, layer.weights()); });
  };
  expect_contains(made([](auto& s) { s.num_heads = 5, s.num_kv_heads.reset(), s.head_dim.reset(); }), "embed_dim = 96");
  expect_contains(made([](auto& s) { s.num_heads = 5, s.num_kv_heads = 2; }), "num_kv_heads = 2");
  expect_contains(made([](auto& s) { s.self_attention = true; }), "key_len is 90, expected query_len = 70");
  expect_contains(made([](auto& s) { s.embed_dim = 0; }), "embed_dim is 0");
  expect_contains(made([](auto& s) { s.type = DataType::kF16; }), "type is f16, expected f32 or bf16");
}

TEST(LayerErrors, WeightsNameBothDims) {
  LayerCase layer(plain());
  const auto made = [&](auto change) {
    MultiHeadAttentionWeights weights = layer.weights();
    change(weights);
    return error_of([&] { MultiHeadAttention(layer.spec(), weights); });
  };
  expect_contains(made([](auto& w) { w.query = w.query.sliced(0, 0, 95); }),
                  "query weight has dims [95, 96], expected [96, 96]");
  expect_contains(made([](auto& w) { w.output = {}; }), "output weight is missing");
  expect_contains(made([](auto& w) { w.key_bias = w.key_bias.sliced(0, 0, 3); }),
                  "key bias has dims [3], expected [96]");
  expect_contains(made([](auto& w) { w.bias_k = w.key_bias; }), "bias_k is given and bias_v is missing");
  expect_contains(made([](auto& w) { w.value.type = DataType::kI32; }), "value weight is i32, expected f32");
}

TEST(LayerErrors, TypesAreNotMixed) {
  LayerShape shape = plain();
  const LayerCase f32(shape);
  shape.bias_kv = true;
  shape.spec.type = DataType::kBF16;
  LayerCase bf16(shape);
  expect_contains(error_of([&] { MultiHeadAttention(bf16.spec(), f32.weights()); }),
                  "query weight is f32, expected bf16");
  expect_contains(error_of([&] { MultiHeadAttention(f32.spec(), bf16.weights()); }),
                  "query weight is bf16, expected f32");
  const auto made = [&](auto change) {
    MultiHeadAttentionWeights weights = bf16.weights();
    change(weights);
    return error_of([&] { MultiHeadAttention(bf16.spec(), weights); });
  };
  expect_contains(made([&](auto& w) { w.output = f32.weights().output; }), "output weight is f32, expected bf16");
  expect_contains(made([&](auto& w) { w.key_bias = f32.weights().key_bias; }), "key bias is f32, expected bf16");
  expect_contains(made([&](auto& w) { w.bias_v = f32.weights().key_bias; }), "bias_v is f32, expected bf16");

  const MultiHeadAttention mha(bf16.spec(), bf16.weights());
  const AlignedBuffer workspace(mha.workspace_bytes(1));
  LayerShape other = plain();
  LayerCase wrong(other);
  const auto ran = [&](auto change) {
    MultiHeadAttentionArgs args = bf16.args();
    change(args, wrong.args());
    return error_of([&] { mha.run(args, workspace.data(), Threads::serial()); });
  };
  expect_contains(ran([](auto& a, const auto& w) { a.query = w.query; }), "query is f32, expected bf16");
  expect_contains(ran([](auto& a, const auto& w) { a.value = w.value; }), "value is f32, expected bf16");
  expect_contains(ran([](auto& a, const auto& w) { a.out = w.out; }), "out is f32, expected bf16");
}

TEST(LayerErrors, ArgumentsAreCheckedBeforeAnythingIsWritten) {
  LayerShape shape = plain();
  shape.spec.mask = MaskKind::kBool;
  shape.spec.key_lengths = true;
  shape.lengths = {3, 90};
  LayerCase layer(shape);
  const MultiHeadAttention mha(layer.spec(), layer.weights());
  const AlignedBuffer workspace(mha.workspace_bytes(1));
  const auto ran = [&](auto change) {
    MultiHeadAttentionArgs args = layer.args();
    const TensorView out = args.out;
    change(args);
    const std::string message = error_of([&] { mha.run(args, workspace.data(), Threads::serial()); });
    for (const float value : LayerCase::values(out)) EXPECT_NE(value, value) << "written: " << message;
    return message;
  };
  expect_contains(ran([](auto& a) { a.query = a.query.sliced(1, 0, 69); }), "query has dims [2, 69, 96]");
  expect_contains(ran([](auto& a) { a.key = {}; }), "key is missing");
  expect_contains(ran([](auto& a) { a.value = a.value.sliced(2, 0, 5); }), "value has dims [2, 90, 5]");
  expect_contains(ran([](auto& a) { a.out = a.out.sliced(1, 0, 4); }), "out has dims [2, 4, 96]");
  expect_contains(ran([](auto& a) { a.mask = {}; }), "mask");
  const std::int64_t lengths[] = {3, 91};
  expect_contains(ran([&](auto& a) { a.key_lengths = view_of(lengths, {2}); }), "key_lengths[1] is 91");
}

TEST(LayerErrors, MasksMayNotCoverAppendedKeys) {
  LayerShape shape = plain();
  shape.spec.add_zero_attention = true;
  shape.spec.mask = MaskKind::kBool;
  LayerCase layer(shape);
  const MultiHeadAttention mha(layer.spec(), layer.weights());
  const AlignedBuffer workspace(mha.workspace_bytes(1));
  const std::vector<std::uint8_t> bits(70 * 91);
  MultiHeadAttentionArgs args = layer.args();
  args.mask = ConstTensorView(reinterpret_cast<const std::byte*>(bits.data()), DataType::kBool, {70, 91});
  expect_contains(error_of([&] { mha.run(args, workspace.data(), Threads::serial()); }),
                  "mask has 91 keys, expected key_len = 90");
}

TEST(LayerParameters, AreCounted) {
  LayerShape shape = plain();
  shape.bias_kv = true;
  LayerCase layer(shape);
  const MultiHeadAttention mha(layer.spec(), layer.weights());
  EXPECT_EQ(mha.parameters(), 4 * 96 * 96 + 4 * 96 + 2 * 96);
  EXPECT_EQ(mha.projection_flops(), 2 * 2 * (70 * 2 + 90 * 2) * 96 * 96);
}

TEST(SplitInProj, GivesThreeViews) {
  const std::vector<float> weight(3 * 8 * 8), bias(24);
  MultiHeadAttentionWeights w;
  split_in_proj(view_of(weight.data(), {24, 8}), view_of(bias.data(), {24}), &w);
  EXPECT_EQ(w.value.as<float>(), weight.data() + 2 * 8 * 8);
  EXPECT_EQ(w.key_bias.as<float>(), bias.data() + 8);
  expect_contains(error_of([&] { split_in_proj(view_of(weight.data(), {23, 8}), {}, &w); }), "[23, 8]");
}

}  // namespace
}  // namespace headway::testing
