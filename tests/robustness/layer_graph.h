// One attention layer in small operators, of any length, on fixed random weights: something to fuse, plan and run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/graph.h"
#include "headway/operator.h"
#include "headway/register_ops.h"
#include "tests/support/random_data.h"

namespace headway::testing {

inline Tensor random_floats(const Dims& dims, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor(DataType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = random.normal();
  return tensor;
}

inline const Registry& all_operators() {
  static const Registry registry = [] {
    Registry made;
    register_ops(&made);
    return made;
  }();
  return registry;
}

/// x [2, length, 16] to y of the same dims.
inline const Graph& layer_graph() {
  static const Graph graph = [] {
    constexpr std::int64_t kWidth = 16;
    Graph made;
    const ValueId x = made.add_input("x", DataType::kF32, {std::int64_t{2}, std::string("length"), kWidth});
    const auto product = [&](ValueId from, const std::string& name, std::uint64_t seed) {
      const ValueId w = made.add_constant("w" + name, std::make_shared<Tensor>(random_floats({kWidth, kWidth}, seed)));
      const ValueId b = made.add_constant("b" + name, std::make_shared<Tensor>(random_floats({kWidth}, seed + 10)));
      return made.add_node("Add", "add" + name, {made.add_node("MatMul", "matmul" + name, {from, w}), b});
    };
    const auto heads = [&](ValueId from, const std::string& name, std::vector<std::int64_t> perm) {
      const ValueId split =
          made.add_node("Reshape", "split" + name, {from}, {{"dims", std::vector<std::int64_t>{0, 0, 4, kWidth / 4}}});
      return made.add_node("Transpose", "heads" + name, {split}, {{"perm", std::move(perm)}});
    };
    const ValueId q = heads(product(x, "q", 1), "q", {0, 2, 1, 3});
    const ValueId k = heads(product(x, "k", 2), "k", {0, 2, 3, 1});
    const ValueId v = heads(product(x, "v", 3), "v", {0, 2, 1, 3});
    auto scale = std::make_shared<Tensor>(DataType::kF32, Dims{});
    *scale->data<float>() = 0.5f;
    const ValueId s = made.add_node(
        "Mul", "scaled", {made.add_node("MatMul", "scores", {q, k}), made.add_constant("scale", std::move(scale))});
    const ValueId p = made.add_node("Softmax", "softmax", {s}, {{"axis", std::int64_t{-1}}});
    const ValueId merged = made.add_node("Transpose", "merged", {made.add_node("MatMul", "context", {p, v})},
                                         {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
    const ValueId flat =
        made.add_node("Reshape", "flat", {merged}, {{"dims", std::vector<std::int64_t>{0, 0, kWidth}}});
    made.add_output("y", product(flat, "o", 4));
    return made;
  }();
  return graph;
}

}  // namespace headway::testing
