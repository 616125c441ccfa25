// See import_limits.h. The counts of a function are taken once, whatever the number of its calls.
#include "runtime/onnx/import_limits.h"

#include <algorithm>
#include <limits>

#include "runtime/base/check.h"

namespace headway::importer {
namespace {

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

/// Bytes of the longest name that a node can get: its own or that of an output.
std::uint64_t name_bytes(const onnx::NodeProto& node) {
  std::size_t bytes = std::max(node.name().size(), node.op_type().size());
  for (const std::string& output : node.output()) bytes = std::max(bytes, output.size());
  return bytes;
}

std::uint64_t list_bytes(const onnx::AttributeProto& attribute) {
  return static_cast<std::uint64_t>(attribute.ints_size()) * sizeof(std::int64_t) +
         static_cast<std::uint64_t>(attribute.floats_size()) * sizeof(float) + attribute.s().size();
}

template <class Visit>
void for_each_attribute(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const Visit& visit) {
  for (const onnx::NodeProto& node : nodes) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      visit(attribute);
      if (attribute.has_g()) for_each_attribute(attribute.g().node(), visit);
    }
  }
}

void check_limit(const char* what, std::uint64_t count, std::size_t limit) {
  if (count <= limit) return;
  fail(ErrorCode::kUnsupported, "the model has ", count == std::numeric_limits<std::uint64_t>::max() ? "over " : "",
       count, ' ', what, " with its functions and branches inlined, at most ", limit, " are imported");
}

}  // namespace

Expansion::Expansion(const Functions& functions, const onnx::ModelProto& model, const ImportLimits& limits)
    : functions_(functions), limits_(limits) {
  if (model.functions_size() == 0) return;
  const auto look = [&](const onnx::AttributeProto& attribute) {
    largest_list_bytes_ = std::max(largest_list_bytes_, list_bytes(attribute));
  };
  for_each_attribute(model.graph().node(), look);
  for (const onnx::FunctionProto& function : model.functions()) for_each_attribute(function.node(), look);
  functions.for_each_default(look);
}

void Expansion::check(const onnx::GraphProto& graph) {
  const Counts counts = count(graph.node(), 1, false);
  check_limit("nodes", counts.nodes, limits_.nodes);
  check_limit("steps (nodes, their inputs, outputs and attributes)", counts.steps, limits_.steps);
  check_limit("bytes of names", counts.name_bytes, limits_.name_bytes);
  check_limit("bytes of attributes", counts.bytes, limits_.attribute_bytes);
}

void Expansion::check_depth(int depth) const {
  require(depth <= limits_.depth, "branches and functions are nested ", depth, " deep, at most ", limits_.depth,
          " are supported");
}

Expansion::Counts Expansion::count(const Nodes& nodes, int depth, bool inlined) {
  check_depth(depth);
  Counts counts;
  counts.depth = 1;
  for (const onnx::NodeProto& node : nodes) add_node(node, depth, inlined, &counts);
  return counts;
}

void Expansion::add_node(const onnx::NodeProto& node, int depth, bool inlined, Counts* counts) {
  counts->nodes = sum(counts->nodes, 1);
  const auto arguments = static_cast<std::uint64_t>(node.input_size()) +
                         static_cast<std::uint64_t>(node.output_size()) +
                         static_cast<std::uint64_t>(node.attribute_size());
  counts->steps = sum(counts->steps, 1 + arguments);
  const std::uint64_t own_name = name_bytes(node);
  if (inlined) {
    // The node's name and one of its values each, which the file has once and the graph as often as it is inlined.
    const std::uint64_t names = 1 + static_cast<std::uint64_t>(node.output_size());
    counts->names = sum(counts->names, names);
    counts->name_bytes = sum(counts->name_bytes, product(names, own_name));
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (inlined) counts->bytes = sum(counts->bytes, attribute_bytes(attribute));
    if (attribute.has_g()) add_inlined(count(attribute.g().node(), depth + 1, true), own_name, counts);
  }
  if (const Function* function = functions_.find(node)) {
    const Counts& body = count_function(*function, depth + 1);
    check_depth(depth + body.depth);
    // Inputs and outputs of the body are bound at every call, those that the node leaves out too.
    counts->steps = sum(counts->steps, static_cast<std::uint64_t>(function->proto->input_size()));
    counts->steps = sum(counts->steps, function->defaults.size());
    add_inlined(body, own_name, counts);
  }
}

void Expansion::add_inlined(const Counts& inner, std::uint64_t name_bytes, Counts* counts) {
  counts->nodes = sum(counts->nodes, inner.nodes);
  counts->steps = sum(counts->steps, inner.steps);
  counts->names = sum(counts->names, inner.names);
  counts->name_bytes = sum(counts->name_bytes, sum(inner.name_bytes, product(inner.names, name_bytes + 1)));
  counts->bytes = sum(counts->bytes, inner.bytes);
  counts->depth = std::max(counts->depth, inner.depth + 1);
}

const Expansion::Counts& Expansion::count_function(const Function& function, int depth) {
  if (const auto found = counted_.find(&function); found != counted_.end()) return found->second;
  // A function that calls itself, by whatever way, goes deeper until the limit stops it.
  const Counts counts = count(function.proto->node(), depth, true);
  return counted_.emplace(&function, counts).first->second;
}

std::uint64_t Expansion::attribute_bytes(const onnx::AttributeProto& attribute) const {
  return attribute.ref_attr_name().empty() ? list_bytes(attribute) : largest_list_bytes_;
}

}  // namespace headway::importer
