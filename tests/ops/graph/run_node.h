// One node with inputs left out or several outputs; comparisons of whole tensors. Knows no operator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "ops/base/numeric.h"
#include "runtime/base/check.h"
#include "tests/ops/graph/run_graph.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {

struct NodeRun {
  std::size_t first_constant = 1;  ///< inputs from here on are constants of the graph
  int outputs = 1;
  std::vector<std::size_t> absent = {};  ///< places of the node's inputs that stay empty; the tensors fill the others
  int workers = 2;
};

inline std::vector<Tensor> run_node(const std::string& op, std::vector<Tensor> tensors, const Attributes& attributes,
                                    const NodeRun& options) {
  Graph graph;
  std::vector<ValueId> inputs;
  std::vector<ConstTensorView> views;
  std::size_t next = 0;
  for (std::size_t i = 0; i < tensors.size() + options.absent.size(); ++i) {
    if (std::find(options.absent.begin(), options.absent.end(), i) != options.absent.end()) {
      inputs.push_back(kNoValue);
      continue;
    }
    Tensor& tensor = tensors[next++];
    const std::string name = "input" + std::to_string(i);
    if (i >= options.first_constant) {
      inputs.push_back(graph.add_constant(name, std::make_shared<const Tensor>(std::move(tensor))));
    } else {
      inputs.push_back(graph.add_input(name, tensor.type(), symbolic(tensor.dims())));
      views.push_back(std::as_const(tensor).view());
    }
  }
  const std::vector<ValueId> values = graph.add_node(op, "node", inputs, attributes, options.outputs);
  for (std::size_t i = 0; i < values.size(); ++i) graph.add_output("y" + std::to_string(i), values[i]);
  const Session session(std::move(graph), all_ops());
  return session.run(views, Threads::openmp(options.workers));
}

/// The usual case: the first input is fed, the others are constants, one output.
inline Tensor run_on(const std::string& op, std::vector<Tensor> tensors, const Attributes& attributes = {}) {
  return std::move(run_node(op, std::move(tensors), attributes, {})[0]);
}

/// What the node says when it is refused.
inline std::string refusal(const std::string& op, std::vector<Tensor> tensors, const Attributes& attributes = {},
                           ErrorCode code = ErrorCode::kInvalidArgument) {
  return error_of([&] { run_on(op, std::move(tensors), attributes); }, code);
}

/// Elements as f64, whatever their type.
inline std::vector<double> as_doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.count()));
  visit_type(tensor.type(), [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(widen(tensor.data<T>()[i]));
  });
  return values;
}

/// Exact, except that NaN equals NaN.
inline void expect_tensor(const Tensor& got, DataType type, const Dims& dims, const std::vector<double>& values) {
  EXPECT_EQ(got.type(), type) << type_name(got.type());
  ASSERT_EQ(got.dims(), dims) << got.dims();
  const std::vector<double> elements = as_doubles(got);
  ASSERT_EQ(elements.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(elements[i])) << "at " << i << " is " << elements[i];
    } else {
      EXPECT_EQ(elements[i], values[i]) << "at " << i;
    }
  }
}

/// A tensor of any type from numbers.
inline Tensor numbers(DataType type, const Dims& dims, const std::vector<double>& values) {
  Tensor tensor(type, dims);
  require(static_cast<std::int64_t>(values.size()) == tensor.count(), "test gives ", values.size(), " values for ",
          dims);
  visit_type(type, [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = convert<T>(values[i]);
  });
  return tensor;
}
inline Tensor floats(const Dims& dims, const std::vector<double>& values) {
  return numbers(DataType::kF32, dims, values);
}
inline Tensor integers(const Dims& dims, const std::vector<std::int64_t>& values) {
  return tensor_of<std::int64_t>(dims, values);
}
inline Tensor axis_list(const std::vector<std::int64_t>& values) {
  return integers({static_cast<std::int64_t>(values.size())}, values);
}
/// 0, 1, 2, …
inline Tensor counted(const Dims& dims, DataType type = DataType::kF32) {
  std::vector<double> values(static_cast<std::size_t>(element_count(dims)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return numbers(type, dims, values);
}

}  // namespace headway::testing
