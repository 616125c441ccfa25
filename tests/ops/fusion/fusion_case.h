// Graphs written by hand as exporters write them, and what fusing makes of their numbers. Knows no pattern.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/fusion.h"
#include "headway/session.h"
#include "tests/ops/graph/run_graph.h"
#include "tests/support/random_data.h"

namespace headway::testing {

// The sizes of most cases: batch, heads, length, head_dim, width.
inline constexpr std::int64_t kB = 2, kH = 3, kS = 5, kD = 8, kE = kH * kD;

inline constexpr float kLowestFill = std::numeric_limits<float>::lowest();
inline constexpr float kInfiniteFill = -std::numeric_limits<float>::infinity();

class FusionCase {
 public:
  using Ints = std::vector<std::int64_t>;

  ValueId input(const std::string& name, DataType type, const Dims& dims) {
    std::vector<SymbolicDim> named(dims.begin(), dims.end());
    if (names_lengths && dims.rank() > 1) named[1] = "length " + std::to_string(dims[1]);
    inputs_.push_back(Tensor(type, dims));
    return graph.add_input(name, type, std::move(named));
  }
  /// Standard normal values.
  ValueId random_input(const std::string& name, const Dims& dims) {
    const ValueId value = input(name, DataType::kF32, dims);
    Tensor& tensor = inputs_.back();
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = random_.normal();
    return value;
  }
  /// True with probability `share`; rows of keys listed in `empty` are all false.
  ValueId bool_input(const std::string& name, const Dims& dims, double share, const std::vector<std::int64_t>& empty) {
    const ValueId value = input(name, DataType::kBool, dims);
    Tensor& tensor = inputs_.back();
    const std::int64_t keys = dims.back();
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<bool>()[i] = i % keys == 0 || random_.chance(share);
    for (const std::int64_t row : empty) {
      for (std::int64_t j = 0; j < keys; ++j) tensor.data<bool>()[row * keys + j] = false;
    }
    return value;
  }
  ValueId number(float value, const Dims& dims = {}) {
    auto tensor = std::make_shared<Tensor>(DataType::kF32, dims);
    for (std::int64_t i = 0; i < tensor->count(); ++i) tensor->data<float>()[i] = value;
    return graph.add_constant("c" + std::to_string(graph.num_values()), std::move(tensor));
  }
  ValueId floats(const std::vector<float>& values) {
    auto tensor = std::make_shared<Tensor>(DataType::kF32, Dims{static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor->data<float>());
    return graph.add_constant("f" + std::to_string(graph.num_values()), std::move(tensor));
  }
  ValueId weight(const Dims& dims) {
    auto tensor = std::make_shared<Tensor>(DataType::kF32, dims);
    for (std::int64_t i = 0; i < tensor->count(); ++i) tensor->data<float>()[i] = 0.3f * random_.normal();
    return graph.add_constant("w" + std::to_string(graph.num_values()), std::move(tensor));
  }
  ValueId ints(const Ints& values) {
    auto tensor = std::make_shared<Tensor>(DataType::kI64, Dims{static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor->data<std::int64_t>());
    return graph.add_constant("i" + std::to_string(graph.num_values()), std::move(tensor));
  }
  /// One number, of rank 0.
  ValueId index(std::int64_t value) {
    auto tensor = std::make_shared<Tensor>(DataType::kI64, Dims{});
    *tensor->data<std::int64_t>() = value;
    return graph.add_constant("i" + std::to_string(graph.num_values()), std::move(tensor));
  }
  ValueId op(const std::string& type, std::vector<ValueId> from, Attributes attributes = {},
             const std::string& name = {}) {
    const std::string own = name.empty() ? type + std::to_string(graph.nodes().size()) : name;
    return graph.add_node(type, own, std::move(from), std::move(attributes));
  }
  ValueId transpose(ValueId x, Ints perm) { return op("Transpose", {x}, {{"perm", std::move(perm)}}); }
  ValueId reshape(ValueId x, const Ints& dims) { return op("Reshape", {x, ints(dims)}); }
  ValueId softmax(ValueId x) { return op("Softmax", {x}, {{"axis", Attribute(std::int64_t{-1})}}, "softmax"); }
  /// Where(IsNaN(p), 0, p)
  ValueId guard(ValueId p) { return op("Where", {op("IsNaN", {p}), number(0), p}); }

  /// Largest difference of any output between the fused and the unfused graph, relative to the largest entry; NaN must
  /// meet NaN. Counts them in nans().
  double fused_minus_unfused() {
    const Graph fused = fuse(graph, all_ops(), &report);
    const std::vector<Tensor> expected = run(graph);
    const std::vector<Tensor> got = run(fused);
    double worst = 0;
    nans_ = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(got[k].dims(), expected[k].dims());
      if (!(got[k].dims() == expected[k].dims())) return 1;
      double largest = 1e-30;
      double apart = 0;
      for (std::int64_t i = 0; i < expected[k].count(); ++i) {
        const float a = expected[k].data<float>()[i];
        const float b = got[k].data<float>()[i];
        EXPECT_EQ(std::isnan(a), std::isnan(b)) << "output " << k << " element " << i << ": " << a << " and " << b;
        if (std::isnan(a) || std::isnan(b)) {
          ++nans_;
          continue;
        }
        largest = std::max(largest, std::fabs(static_cast<double>(a)));
        apart = std::max(apart, std::fabs(static_cast<double>(a) - static_cast<double>(b)));
      }
      worst = std::max(worst, apart / largest);
    }
    return worst;
  }
  int nans() const { return nans_; }

  Graph graph;
  FusionReport report;
  bool names_lengths = false;  ///< axis 1 of inputs made from now on is a name, as dynamic exports have it

 private:
  std::vector<Tensor> run(const Graph& one) const {
    std::vector<ConstTensorView> views;
    for (const Tensor& tensor : inputs_) views.push_back(tensor.view());
    return Session(one, all_ops()).run(views, Threads::openmp(2));
  }

  Random random_{7};
  std::vector<Tensor> inputs_;
  int nans_ = 0;
};

/// One layer was found, with such a mask, and its numbers are those of the graph as it was, `nans` of them NaN.
inline void expect_fused(FusionCase* c, const std::string& mask, int nans = 0) {
  EXPECT_LE(c->fused_minus_unfused(), 1e-5);
  EXPECT_EQ(c->nans(), nans);
  ASSERT_EQ(c->report.count("attention"), 1) << c->report.text();
  EXPECT_TRUE(c->report.missed.empty());
  EXPECT_EQ(c->report.fused[0].mask, mask);
}

}  // namespace headway::testing
