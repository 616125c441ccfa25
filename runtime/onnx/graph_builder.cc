// Nodes in the order of the file, each with the names it may use at that point.
#include "runtime/onnx/graph_builder.h"

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/base/quoted.h"
#include "runtime/onnx/import_limits.h"
#include "runtime/onnx/node_facts.h"
#include "runtime/onnx/read_attributes.h"
#include "runtime/onnx/value_info.h"

namespace headway::importer {
namespace {

/// False when a value that the node reads does not exist yet.
bool find_inputs(const onnx::NodeProto& node, const Scope& scope, std::vector<ValueId>* inputs) {
  for (const std::string& name : node.input()) {
    const ValueId* value = name.empty() ? &kNoValue : scope.find(name);
    if (value == nullptr) return false;
    inputs->push_back(*value);
  }
  return branches_are_ready(node, scope);
}

/// For a node whose turn it is: nobody makes what is not there.
std::vector<ValueId> inputs_of(const onnx::NodeProto& node, const Scope& scope) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    const ValueId* value = node.input(i).empty() ? &kNoValue : scope.find(node.input(i));
    if (value == nullptr) {
      fail(ErrorCode::kInvalidArgument, described(node, scope), " input ", i, " is ", Quoted{node.input(i)},
           ", which is no input, initializer or output of a node");
    }
    inputs.push_back(*value);
  }
  return inputs;
}

}  // namespace

GraphBuilder::GraphBuilder(const Source& source)
    : source_(source), functions_(source.model), external_(source.model_path) {}

Graph GraphBuilder::build() {
  const onnx::GraphProto& graph = source_.model.graph();
  Expansion(functions_, source_.model, source_.limits).check(graph);
  Scope scope(nullptr, "");
  for (const onnx::ValueInfoProto& output : graph.output()) check_output(output);
  add_initializers(graph, &scope, true);
  add_inputs(graph, &scope);
  add_nodes(graph.node(), &scope);
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const ValueId* value = scope.find(output.name());
    require(value != nullptr && *value != kNoValue, "output ", Quoted{output.name()}, " is made by no node");
    graph_.add_output(output.name(), *value);
  }
  return std::move(graph_);
}

void GraphBuilder::add_initializers(const onnx::GraphProto& graph, Scope* scope, bool split) {
  if (graph.sparse_initializer_size() > 0) {
    fail(ErrorCode::kUnsupported, "the graph has ", graph.sparse_initializer_size(),
         " sparse initializers, which are not supported");
  }
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const onnx::TensorProto& tensor = graph.initializer(i);
    const Bytes raw_data = split ? source_.split.raw_data[static_cast<std::size_t>(i)] : Bytes();
    scope->define(tensor.name(), add_constant(tensor.name(), &tensor, [&] {
                    return read_tensor({tensor, raw_data, source_.file, &external_});
                  }));
  }
}

void GraphBuilder::add_inputs(const onnx::GraphProto& graph, Scope* scope) {
  for (const onnx::ValueInfoProto& input : graph.input()) {
    // An initializer of the same name is the input's default; it is taken as what the input is.
    if (scope->defines(input.name())) continue;
    const InputInfo info = input_info(input);
    scope->define(input.name(), graph_.add_input(input.name(), info.type, info.dims));
  }
}

void GraphBuilder::add_nodes(const Nodes& nodes, Scope* scope) {
  ++depth_;
  for (int i = 0; i < nodes.size(); ++i) {
    std::vector<ValueId> inputs;
    if (find_inputs(nodes[i], *scope, &inputs)) {
      add_node(nodes[i], std::move(inputs), scope);
      continue;
    }
    for (const int k : node_order(nodes, i, *scope)) add_node(nodes[k], inputs_of(nodes[k], *scope), scope);
    break;
  }
  --depth_;
}

void GraphBuilder::add_node(const onnx::NodeProto& node, std::vector<ValueId> inputs, Scope* scope) {
  const AttributeMap attributes = scope->resolve_all(node);
  const Place place{node, attributes, scope, node_name(node, *scope)};
  const Function* function = functions_.find(node);
  try {
    if (function != nullptr) {
      add_call(place, *function, inputs);
    } else if (is_standard(node, "Constant")) {
      add_constant_node(place);
    } else if (is_standard(node, "If")) {
      require(inputs.size() == 1 && inputs[0] != kNoValue, "has ", inputs.size(), " inputs, expected 1");
      add_if(place, inputs[0]);
    } else {
      add_operator(place, std::move(inputs));
    }
  } catch (const Error& error) {
    // What comes from inside a branch or a body names its node already.
    if (std::string_view(error.what()).starts_with("node ")) throw;
    throw Error(error.code(), described(node, *scope) + ": " + error.what());
  }
}

void GraphBuilder::add_operator(const Place& place, std::vector<ValueId> inputs) {
  const onnx::NodeProto& node = place.node;
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  int outputs = node.output_size();
  while (outputs > 0 && node.output(outputs - 1).empty()) --outputs;
  if (outputs == 0) return;
  AttributeMap attributes = place.attributes;
  const auto value = attributes.find("value");
  if (is_standard(node, "ConstantOfShape") && value != attributes.end()) {
    require(inputs.size() == 1, "has ", inputs.size(), " inputs, expected 1");
    const onnx::TensorProto& tensor = value->second->t();
    inputs.push_back(add_constant(place.name + ".value", &tensor, [&] {
      return read_tensor({tensor, {}, nullptr, &external_});
    }));
    attributes.erase(value);
  }
  const std::vector<ValueId> made =
      graph_.add_node(op_name(node), place.name, std::move(inputs), read_attributes(attributes), outputs);
  for (int i = 0; i < outputs; ++i) {
    if (!node.output(i).empty()) place.scope->define(node.output(i), made[static_cast<std::size_t>(i)]);
  }
}

void GraphBuilder::add_constant_node(const Place& place) {
  require(place.node.output_size() == 1, "has ", place.node.output_size(), " outputs, expected 1");
  require(place.attributes.size() == 1, "has ", place.attributes.size(), " attributes, expected 1");
  const std::string& name = place.attributes.begin()->first;
  const onnx::AttributeProto& attribute = *place.attributes.begin()->second;
  place.scope->define(place.node.output(0), add_constant(place.name, &attribute, [&] {
                        return name == "value" ? read_tensor({attribute.t(), {}, nullptr, &external_})
                                               : constant_of_attribute(name, attribute);
                      }));
}

void GraphBuilder::add_call(const Place& place, const Function& function, const std::vector<ValueId>& inputs) {
  const onnx::FunctionProto& proto = *function.proto;
  require(place.node.input_size() <= proto.input_size(), "has ", place.node.input_size(), " inputs, expected at most ",
          proto.input_size());
  require(place.node.output_size() <= proto.output_size(), "has ", place.node.output_size(),
          " outputs, expected at most ", proto.output_size());
  Scope body(nullptr, place.name + '/');
  AttributeMap arguments = function.defaults;
  for (const auto& [name, attribute] : place.attributes) arguments[name] = attribute;
  body.set_arguments(std::move(arguments));
  for (int i = 0; i < proto.input_size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    body.define(proto.input(i), k < inputs.size() ? inputs[k] : kNoValue);
  }
  add_nodes(proto.node(), &body);
  for (int i = 0; i < place.node.output_size(); ++i) {
    if (place.node.output(i).empty()) continue;
    const ValueId* value = body.find(proto.output(i));
    require(value != nullptr, "its function's output ", Quoted{proto.output(i)}, " is made by no node");
    place.scope->define(place.node.output(i), *value);
  }
}

void GraphBuilder::add_if(const Place& place, ValueId condition) {
  const int outputs = place.node.output_size();
  std::vector<ValueId> results;
  if (const Tensor* known = graph_.constant(condition)) {
    require(known->type() == DataType::kBool && known->count() == 1, "has a condition of ", type_name(known->type()),
            ' ', known->dims(), ", expected one bool");
    results = add_branch(place, *known->data<bool>() ? "then_branch" : "else_branch", {});
  } else {
    const std::vector<ValueId> taken = add_branch(place, "then_branch", {condition, true});
    const std::vector<ValueId> other = add_branch(place, "else_branch", {condition, false});
    for (std::size_t i = 0; i < taken.size(); ++i) {
      results.push_back(graph_.add_node("If", place.name, {condition, taken[i], other[i]}));
    }
  }
  for (int i = 0; i < outputs; ++i) {
    if (!place.node.output(i).empty()) place.scope->define(place.node.output(i), results[static_cast<std::size_t>(i)]);
  }
}

std::vector<ValueId> GraphBuilder::add_branch(const Place& place, const char* branch, const Guard& guard) {
  const auto found = place.attributes.find(branch);
  require(found != place.attributes.end() && found->second->has_g(), "has no graph ", branch);
  const onnx::GraphProto& graph = found->second->g();
  require(graph.input_size() == 0, branch, " has ", graph.input_size(), " inputs, expected 0");
  require(graph.output_size() == place.node.output_size(), branch, " has ", graph.output_size(), " outputs, expected ",
          place.node.output_size());
  Scope scope(place.scope, place.name + '/');
  const std::size_t first = graph_.nodes().size();
  add_initializers(graph, &scope, false);
  add_nodes(graph.node(), &scope);
  if (guard.condition != kNoValue) graph_.guard_nodes(first, guard);
  std::vector<ValueId> results;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const ValueId* value = scope.find(output.name());
    require(value != nullptr && *value != kNoValue, branch, " output ", Quoted{output.name()}, " is made by no node");
    results.push_back(*value);
  }
  return results;
}

template <class Read>
ValueId GraphBuilder::add_constant(const std::string& name, const void* source, const Read& read) {
  const auto read_counted = [&] {
    auto tensor = std::make_shared<const Tensor>(read());
    const std::size_t bytes = tensor_bytes(tensor->type(), tensor->dims());
    weight_bytes_ += bytes;
    if (tensor->is_shared()) mapped_bytes_ += bytes;
    return tensor;
  };
  if (depth_ <= 1) return graph_.add_constant(name, read_counted());
  std::shared_ptr<const Tensor>& shared = shared_constants_[source];
  if (!shared) shared = read_counted();
  return graph_.add_constant(name, shared);
}

}  // namespace headway::importer
