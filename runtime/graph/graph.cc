// Building a graph: every value exists before it is used, so nothing later has to look for cycles or dangling ids.
#include "headway/graph.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/quoted.h"

namespace headway {

ValueId Graph::new_value(const std::string& name) {
  values_.push_back({name, nullptr});
  return num_values() - 1;
}

ValueId Graph::add_input(const std::string& name, DataType type, std::vector<SymbolicDim> dims) {
  for (; named_ < values_.size(); ++named_) names_.insert(values_[named_].name);
  require(names_.count(name) == 0, "input ", Quoted{name}, ": the name is taken");
  require(dims.size() <= kMaxRank, "input ", Quoted{name}, " has rank ", dims.size(), ", at most ", kMaxRank,
          " is supported");
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (const auto* size = std::get_if<std::int64_t>(&dims[axis])) {
      require(*size >= 0, "input ", Quoted{name}, " axis ", axis, " is ", *size, ", expected 0 or more");
    } else {
      require(!std::get<std::string>(dims[axis]).empty(), "input ", Quoted{name}, " axis ", axis, " has an empty name");
    }
  }
  const ValueId value = new_value(name);
  inputs_.push_back({value, type, std::move(dims)});
  return value;
}

ValueId Graph::add_constant(const std::string& name, std::shared_ptr<const Tensor> tensor) {
  require(tensor != nullptr, "constant ", Quoted{name}, " is null");
  const ValueId value = new_value(name);
  values_[value].constant = std::move(tensor);
  return value;
}

ValueId Graph::add_node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                        Attributes attributes) {
  return add_node(op, name, std::move(inputs), std::move(attributes), 1).front();
}

std::vector<ValueId> Graph::add_node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                                     Attributes attributes, int num_outputs) {
  require(num_outputs >= 1, "node ", Quoted{name}, " (", op, ") has ", num_outputs, " outputs, expected 1 or more");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i] >= kNoValue && inputs[i] < num_values(), "node ", Quoted{name}, " (", op, ") input ", i,
            " is value ", inputs[i], ", expected less than ", num_values(), " values");
  }
  std::vector<ValueId> outputs;
  for (int i = 0; i < num_outputs; ++i) {
    outputs.push_back(new_value(i == 0 ? name : name + ':' + std::to_string(i)));
  }
  nodes_.push_back({op, name, std::move(attributes), std::move(inputs), outputs, {}});
  return outputs;
}

void Graph::guard_nodes(std::size_t first, Guard guard) {
  require(guard.condition >= 0 && guard.condition < num_values(), "guard is value ", guard.condition,
          ", expected less than ", num_values(), " values");
  for (std::size_t i = first; i < nodes_.size(); ++i) nodes_[i].guards.insert(nodes_[i].guards.begin(), guard);
}

void Graph::add_output(const std::string& name, ValueId value) {
  require(value >= 0 && value < num_values(), "output ", Quoted{name}, " is value ", value, ", expected less than ",
          num_values(), " values");
  require(output_names_.insert(name).second, "output ", Quoted{name}, ": the name is taken");
  outputs_.push_back({name, value});
}

const std::shared_ptr<const Tensor>& Graph::shared_constant(ValueId value) const {
  require(value >= 0 && value < num_values(), "value is ", value, ", expected less than ", num_values());
  return values_[value].constant;
}

const std::string& Graph::value_name(ValueId value) const {
  require(value >= 0 && value < num_values(), "value is ", value, ", expected less than ", num_values());
  return values_[value].name;
}

}  // namespace headway
