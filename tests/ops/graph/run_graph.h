// Small graphs for tests: one operator on tensors given as lists, and what a session makes of it.
#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "headway/register_ops.h"
#include "headway/session.h"
#include "runtime/base/check.h"
#include "tests/support/random_data.h"

namespace headway::testing {

inline const Registry& all_ops() {
  static const Registry registry = [] {
    Registry made;
    register_ops(&made);
    return made;
  }();
  return registry;
}

template <class T>
Tensor tensor_of(const Dims& dims, const std::vector<T>& values) {
  Tensor tensor(data_type_of<T>(), dims);
  require(static_cast<std::int64_t>(values.size()) == tensor.count(), "test gives ", values.size(), " values for ",
          dims);
  if (!values.empty()) std::memcpy(tensor.data<T>(), values.data(), values.size() * sizeof(T));
  return tensor;
}

inline Tensor random_tensor(const Dims& dims, Random* random, float scale = 1) {
  Tensor tensor(DataType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = scale * random->normal();
  return tensor;
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  return std::vector<T>(data, data + tensor.count());
}

inline std::vector<SymbolicDim> symbolic(const Dims& dims) {
  return std::vector<SymbolicDim>(dims.begin(), dims.end());
}

/// Tensors cannot be copied into an initialiser list.
template <class... Tensors>
std::vector<Tensor> list(Tensors&&... tensors) {
  std::vector<Tensor> all;
  (all.push_back(std::move(tensors)), ...);
  return all;
}

/// One node fed with the tensors; those from `first_constant` on are constants of the graph.
inline Tensor run_op(const std::string& op, std::vector<Tensor> tensors, const Attributes& attributes = {},
                     std::size_t first_constant = SIZE_MAX, const Threads& threads = Threads::openmp(2)) {
  Graph graph;
  std::vector<ValueId> inputs;
  std::vector<ConstTensorView> views;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = "input" + std::to_string(i);
    if (i >= first_constant) {
      inputs.push_back(graph.add_constant(name, std::make_shared<const Tensor>(std::move(tensors[i]))));
    } else {
      inputs.push_back(graph.add_input(name, tensors[i].type(), symbolic(tensors[i].dims())));
      views.push_back(std::as_const(tensors[i]).view());
    }
  }
  graph.add_output("y", graph.add_node(op, "node", inputs, attributes));
  const Session session(std::move(graph), all_ops());
  return std::move(session.run(views, threads)[0]);
}

}  // namespace headway::testing
