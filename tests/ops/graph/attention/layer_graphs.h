// One self-attention layer with an additive mask as a fused node and as the graph of small operators that it stands
// for, on the same random weights. Decides no sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/ops/graph/run_graph.h"
#include "tests/support/random_data.h"

namespace headway::testing {

using Integers = std::vector<std::int64_t>;

struct LayerSizes {
  std::int64_t batch;
  std::int64_t length;
  std::int64_t width;
  std::int64_t heads;
};

/// Weights of one layer and its inputs, shared by both graphs; the mask hides a third of what there is.
struct GraphLayer {
  explicit GraphLayer(const LayerSizes& of) : sizes(of) {
    const std::int64_t width = of.width;
    Random random(11);
    for (auto& w : weights) {
      const float scale = 1.5f / std::sqrt(static_cast<float>(width));
      w = std::make_shared<const Tensor>(random_tensor({width, width}, &random, scale));
    }
    for (auto& b : biases) b = std::make_shared<const Tensor>(random_tensor({width}, &random, 0.5f));
    x = random_tensor({of.batch, of.length, width}, &random);
    mask = Tensor(DataType::kF32, {of.length, of.length});
    for (std::int64_t i = 0; i < mask.count(); ++i) {
      mask.data<float>()[i] = random.chance(0.3) ? -INFINITY : random.normal();
    }
  }
  LayerSizes sizes;
  std::shared_ptr<const Tensor> weights[4], biases[4];
  Tensor x, mask;
};

inline Graph fused_graph(const GraphLayer& layer, const Attributes& more = {}) {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, symbolic(layer.x.dims()));
  const ValueId mask = graph.add_input("mask", DataType::kF32, symbolic(layer.mask.dims()));
  std::vector<ValueId> inputs{x, kNoValue, kNoValue};
  const char* const names[] = {"q", "k", "v", "o"};
  for (int i = 0; i < 4; ++i) inputs.push_back(graph.add_constant(std::string("w_") + names[i], layer.weights[i]));
  for (int i = 0; i < 4; ++i) inputs.push_back(graph.add_constant(std::string("b_") + names[i], layer.biases[i]));
  inputs.insert(inputs.end(), {kNoValue, kNoValue, mask});
  Attributes attributes = more;
  attributes.set("num_heads", layer.sizes.heads);
  graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, attributes));
  return graph;
}

/// The transpose of a weight as a constant: MatMul has x·W where the layer has x·Wᵀ.
inline std::shared_ptr<const Tensor> transposed(const Tensor& w) {
  auto result = std::make_shared<Tensor>(DataType::kF32, Dims{w.dims()[1], w.dims()[0]});
  copy_elements(w.view().permuted({1, 0}), result->view());
  return result;
}

inline Graph unfused_graph(const GraphLayer& layer) {
  const std::int64_t heads_of = layer.sizes.heads, head_dim = layer.sizes.width / heads_of;
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, symbolic(layer.x.dims()));
  const ValueId mask = graph.add_input("mask", DataType::kF32, symbolic(layer.mask.dims()));
  const auto linear = [&](ValueId from, int i, const std::string& name) {
    const ValueId w = graph.add_constant("w_" + name, transposed(*layer.weights[i]));
    const ValueId b = graph.add_constant("b_" + name, layer.biases[i]);
    return graph.add_node("Add", "add_" + name, {graph.add_node("MatMul", "matmul_" + name, {from, w}), b});
  };
  const auto heads = [&](ValueId from, const std::string& name, Integers perm) {
    const ValueId split =
        graph.add_node("Reshape", "split_" + name, {from}, {{"dims", Integers{0, 0, heads_of, head_dim}}});
    return graph.add_node("Transpose", "heads_" + name, {split}, {{"perm", perm}});
  };
  const ValueId q = heads(linear(x, 0, "q"), "q", {0, 2, 1, 3});
  const ValueId k = heads(linear(x, 1, "k"), "k", {0, 2, 3, 1});
  const ValueId v = heads(linear(x, 2, "v"), "v", {0, 2, 1, 3});
  const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
  const ValueId s = graph.add_constant("scale", std::make_shared<const Tensor>(tensor_of<float>({}, {scale})));
  const ValueId scaled = graph.add_node("Mul", "scaled", {graph.add_node("MatMul", "scores", {q, k}), s});
  const ValueId biased = graph.add_node("Add", "biased", {scaled, mask});
  const ValueId p = graph.add_node("Softmax", "probabilities", {biased}, {{"axis", std::int64_t{-1}}});
  const ValueId context = graph.add_node("Transpose", "merge", {graph.add_node("MatMul", "context", {p, v})},
                                         {{"perm", Integers{0, 2, 1, 3}}});
  const ValueId merged = graph.add_node("Reshape", "merged", {context}, {{"dims", Integers{0, 0, -1}}});
  graph.add_output("y", linear(merged, 3, "o"));
  return graph;
}

/// The largest distance; infinite where either is NaN.
inline double worst_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(double{got[i]} - double{expected.at(i)});
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
  }
  return worst;
}

}  // namespace headway::testing
