// One layer as a fused node and as the graph of small operators that it stands for; sessions that run it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "headway/multi_head_attention.h"
#include "ops/base/narrow.h"
#include "tests/ops/graph/attention/layer_graphs.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 45, kWidth = 64, kHeads = 4;

struct Layer : GraphLayer {
  Layer() : GraphLayer({kBatch, kLength, kWidth, kHeads}) {}
};

std::vector<float> run(const Session& session, const Layer& layer, const Threads& threads) {
  const ConstTensorView inputs[] = {layer.x.view(), layer.mask.view()};
  return values_of<float>(session.run(inputs, threads)[0]);
}

TEST(LayerGraph, FusedEqualsUnfused) {
  const Layer layer;
  const Session unfused(unfused_graph(layer), all_ops());
  const std::vector<float> expected = run(unfused, layer, Threads::openmp(2));
  for (const std::string& implementation : attention_implementations()) {
    if (implementation == "bf16_pairs") continue;  // the layer is f32
    const Session fused(fused_graph(layer, {{"implementation", implementation}}), all_ops());
    const std::vector<float> got = run(fused, layer, Threads::openmp(2));
    ASSERT_EQ(got.size(), expected.size());
    const double worst = worst_difference(got, expected);
    // Both are f32: twice what either is off, values of the order of one.
    EXPECT_LT(worst, 2e-5) << implementation;
    std::cout << implementation << ": fused and unfused differ by " << worst << "\n";
  }
}

TEST(LayerGraph, SessionAllocatesNothingOnceWarm) {
  const Layer layer;
  for (const bool fused : {false, true}) {
    const Session session(fused ? fused_graph(layer) : unfused_graph(layer), all_ops());
    const ConstTensorView inputs[] = {layer.x.view(), layer.mask.view()};
    Tensor y(DataType::kF32, layer.x.dims());
    const TensorView outputs[] = {y.view()};
    for (const int workers : {1, 2}) {
      const Threads threads = Threads::openmp(workers);
      for (int i = 0; i < 2; ++i) session.run(inputs, outputs, threads);
      const AllocationCounter counter;
      for (int i = 0; i < 5; ++i) session.run(inputs, outputs, threads);
      EXPECT_EQ(counter.count(), 0) << (fused ? "fused" : "unfused") << ", " << workers << " workers";
    }
  }
}

TEST(LayerGraph, EightThreadsShareASession) {
  const Layer layer;
  for (const bool fused : {false, true}) {
    const Session session(fused ? fused_graph(layer) : unfused_graph(layer), all_ops());
    const std::vector<float> expected = run(session, layer, Threads::serial());
    std::vector<std::thread> team;
    for (int t = 0; t < 8; ++t) {
      team.emplace_back([&, t] { EXPECT_EQ(run(session, layer, Threads::openmp(t % 2 + 1)), expected); });
    }
    for (std::thread& thread : team) thread.join();
  }
}

TEST(LayerGraph, ScoresAreASecondOutput) {
  const Layer layer;
  Graph graph = fused_graph(layer);
  const Node node = graph.nodes()[0];
  Attributes attributes = node.attributes;
  attributes.set("scores", std::string("mean_probabilities"));
  const std::vector<ValueId> outputs = graph.add_node("MultiHeadAttention", "with_scores", node.inputs, attributes, 2);
  graph.add_output("scores", outputs[1]);
  const Session session(std::move(graph), all_ops());
  const ConstTensorView inputs[] = {layer.x.view(), layer.mask.view()};
  const std::vector<Tensor> results = session.run(inputs, Threads::openmp(2));
  ASSERT_EQ(results[1].dims(), (Dims{kBatch, kLength, kLength}));
  for (std::int64_t row = 0; row < kBatch * kLength; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < kLength; ++j) sum += results[1].data<float>()[row * kLength + j];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(LayerGraph, ErrorsNameWhatIsWrong) {
  const Layer layer;
  const auto planned = [&](const Attributes& attributes) {
    return error_of([&] {
      const Session session(fused_graph(layer, attributes), all_ops());
      run(session, layer, Threads::serial());
    });
  };
  expect_contains(planned({{"causal", std::string("diagonal")}}),
                  "expected one of none, top_left, bottom_right, offset, last_key");
  expect_contains(planned({{"mask_polarity", std::string("yes")}}), "true_attends, true_hides");
  expect_contains(planned({{"num_kv_heads", std::int64_t{3}}}), "num_kv_heads = 3");
  expect_contains(planned({{"semantics", std::string("jax")}}), "jax");
  expect_contains(planned({{"implementation", std::string("fastest")}}), "fastest");
}

TEST(LayerGraph, WeightsMustBeConstants) {
  Graph graph;
  const Dims weight{8, 8};
  std::vector<ValueId> inputs{graph.add_input("x", DataType::kF32, symbolic({1, 2, 8})), kNoValue, kNoValue};
  for (const char* name : {"q", "k", "v", "o"})
    inputs.push_back(graph.add_input(name, DataType::kF32, symbolic(weight)));
  graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, {{"num_heads", std::int64_t{2}}}));
  expect_contains(error_of([&] {
                    Random random(1);
                    const Tensor x = random_tensor({1, 2, 8}, &random), w = random_tensor(weight, &random);
                    const Session session(std::move(graph), all_ops());
                    const ConstTensorView views[] = {x.view(), w.view(), w.view(), w.view(), w.view()};
                    session.run(views, Threads::serial());
                  }),
                  "w_q is computed at run time, expected a constant");
}

TEST(LayerGraph, OneBatchEntryOfKeysStandsForAll) {
  const Layer layer;
  Random random(3);
  const Tensor memory = random_tensor({1, 7, kWidth}, &random);
  const auto run_with = [&](const ConstTensorView& keys) {
    Graph graph;
    const ValueId x = graph.add_input("x", DataType::kF32, symbolic(layer.x.dims()));
    const ValueId m = graph.add_input("m", DataType::kF32, symbolic(keys.dims));
    std::vector<ValueId> inputs{x, m, m};
    for (int i = 0; i < 4; ++i) inputs.push_back(graph.add_constant("w" + std::to_string(i), layer.weights[i]));
    graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, {{"num_heads", kHeads}}));
    const Session session(std::move(graph), all_ops());
    const ConstTensorView in[] = {layer.x.view(), keys};
    const std::vector<Tensor> y = session.run(in, Threads::serial());
    return std::vector<float>(y[0].data<float>(), y[0].data<float>() + y[0].count());
  };
  Tensor repeated(DataType::kF32, {kBatch, 7, kWidth});
  copy_elements(memory.view().broadcast_to(repeated.dims()), repeated.view());
  EXPECT_EQ(run_with(memory.view()), run_with(std::as_const(repeated).view()));
}

std::shared_ptr<const Tensor> as_bf16(const Tensor& from) {
  auto narrow = std::make_shared<Tensor>(DataType::kBF16, from.dims());
  convert_view(from.view(), narrow->view());
  return narrow;
}

TEST(LayerGraph, InBf16TheNodeIsTheLayer) {
  Layer layer;
  for (auto& w : layer.weights) w = as_bf16(*w);
  for (auto& b : layer.biases) b = as_bf16(*b);
  const auto x = as_bf16(layer.x);
  Graph graph;
  std::vector<ValueId> inputs{graph.add_input("x", DataType::kBF16, symbolic(x->dims())), kNoValue, kNoValue};
  for (int i = 0; i < 4; ++i) inputs.push_back(graph.add_constant("w" + std::to_string(i), layer.weights[i]));
  for (int i = 0; i < 4; ++i) inputs.push_back(graph.add_constant("b" + std::to_string(i), layer.biases[i]));
  graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, {{"num_heads", kHeads}}));
  const Session session(std::move(graph), all_ops());
  const ConstTensorView in[] = {x->view()};
  const std::vector<Tensor> y = session.run(in, Threads::serial());
  ASSERT_EQ(y.at(0).type(), DataType::kBF16);

  MultiHeadAttentionSpec spec;
  spec.type = DataType::kBF16;
  spec.batch = kBatch;
  spec.query_len = kLength;
  spec.embed_dim = kWidth;
  spec.num_heads = kHeads;
  spec.self_attention = true;
  const auto& w = layer.weights;
  const auto& b = layer.biases;
  const MultiHeadAttention direct(spec, {.query = w[0]->view(),
                                         .key = w[1]->view(),
                                         .value = w[2]->view(),
                                         .output = w[3]->view(),
                                         .query_bias = b[0]->view(),
                                         .key_bias = b[1]->view(),
                                         .value_bias = b[2]->view(),
                                         .output_bias = b[3]->view(),
                                         .bias_k = {},
                                         .bias_v = {}});
  Tensor expected(DataType::kBF16, x->dims());
  const AlignedBuffer workspace(direct.workspace_bytes(1));
  MultiHeadAttentionArgs args;
  args.query = args.key = args.value = x->view();
  args.out = expected.view();
  direct.run(args, workspace.data(), Threads::serial());
  EXPECT_EQ(std::memcmp(y[0].view().data, expected.view().data, tensor_bytes(DataType::kBF16, x->dims())), 0);
}

TEST(AttentionNode, TypesMustAgree) {
  expect_contains(error_of([] {
                    run_op("Attention", list(tensor_of<float>({1, 1, 1, 1}, {0}), Tensor(DataType::kBF16, {1, 1, 1, 1}),
                                             tensor_of<float>({1, 1, 1, 1}, {1})));
                  }),
                  "input 1 is bf16, expected f32 as input 0");
}

TEST(AttentionNode, RunsTheCore) {
  // Known answer: two queries of zeros see the first one and the first two of four values.
  const Tensor y = run_op("Attention",
                          list(tensor_of<float>({1, 1, 2, 1}, {0, 0}), tensor_of<float>({1, 1, 4, 1}, {0, 0, 0, 0}),
                               tensor_of<float>({1, 1, 4, 1}, {1, 2, 3, 4})),
                          {{"causal", std::string("top_left")}});
  EXPECT_FLOAT_EQ(y.data<float>()[0], 1);
  EXPECT_FLOAT_EQ(y.data<float>()[1], 1.5);
  expect_contains(error_of([] {
                    run_op("Attention",
                           list(tensor_of<float>({1, 1, 1, 1}, {0}), tensor_of<float>({1, 1, 1, 2}, {0, 0}),
                                tensor_of<float>({1, 1, 1, 1}, {1})));
                  }),
                  "key has dims [1, 1, 1, 2], expected a last dim of 1");
}

}  // namespace
}  // namespace headway::testing
