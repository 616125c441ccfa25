// The checks of a graph at construction and of the inputs at every run.
#include "runtime/exec/validate.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "runtime/base/check.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/quoted.h"

namespace headway {
namespace {

const std::string& input_name(const Graph& graph, std::size_t i) { return graph.value_name(graph.inputs()[i].value); }

}  // namespace

void check_graph(const Graph& graph, const Registry& registry) {
  require(!graph.outputs().empty(), "graph has 0 outputs, expected 1 or more");
  std::map<std::string, std::vector<std::string>> unknown;
  for (const Node& node : graph.nodes()) {
    if (registry.find(node.op) == nullptr) unknown[node.op].push_back(node.name);
  }
  if (unknown.empty()) return;
  // The first of each kind; a graph may have a million.
  constexpr std::size_t kMaxListed = 8;
  std::ostringstream text;
  std::size_t ops = 0;
  for (const auto& [op, nodes] : unknown) {
    if (ops == kMaxListed) text << " and " << unknown.size() - ops << " more";
    if (ops++ >= kMaxListed) break;
    text << (ops == 1 ? "" : ", ") << printable(op) << " (node ";
    for (std::size_t i = 0; i < std::min(nodes.size(), kMaxListed); ++i)
      text << (i == 0 ? "" : ", ") << Quoted{nodes[i]};
    if (nodes.size() > kMaxListed) text << " and " << nodes.size() - kMaxListed << " more";
    text << ')';
  }
  fail(ErrorCode::kUnsupported, "graph uses ", unknown.size(), " unknown operators: ", text.str());
}

InputRules::InputRules(const Graph& graph) {
  struct Place {
    int input;
    int axis;
  };
  std::map<std::string, Place> first;
  for (int i = 0; i < static_cast<int>(graph.inputs().size()); ++i) {
    std::vector<Axis> axes;
    const auto& dims = graph.inputs()[i].dims;
    for (int a = 0; a < static_cast<int>(dims.size()); ++a) {
      if (const auto* size = std::get_if<std::int64_t>(&dims[a])) {
        axes.push_back({true, *size, i, a, nullptr});
      } else {
        const auto& name = std::get<std::string>(dims[a]);
        const Place place = first.try_emplace(name, Place{i, a}).first->second;
        axes.push_back({false, 0, place.input, place.axis, &name});
      }
    }
    axes_.push_back(std::move(axes));
  }
}

template <class T>
void InputRules::check_shapes(const Graph& graph, std::span<const T> inputs) const {
  require(inputs.size() == axes_.size(), "run got ", inputs.size(), " inputs, expected ", axes_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const T& input = inputs[i];
    const GraphInput& wanted = graph.inputs()[i];
    const auto& axes = axes_[i];
    require(input.present, "input ", Quoted{input_name(graph, i)}, " is absent");
    require(input.type == wanted.type, "input ", Quoted{input_name(graph, i)}, " is ", type_name(input.type),
            ", expected ", type_name(wanted.type));
    require(input.dims.rank() == static_cast<int>(axes.size()), "input ", Quoted{input_name(graph, i)}, " is ",
            input.dims, " of rank ", input.dims.rank(), ", expected rank ", axes.size());
    for (int a = 0; a < input.dims.rank(); ++a) {
      const std::int64_t size = input.dims[a];
      require(size >= 0, "input ", Quoted{input_name(graph, i)}, " axis ", a, " is ", size, ", expected 0 or more");
      if (axes[a].fixed) {
        require(size == axes[a].size, "input ", Quoted{input_name(graph, i)}, " axis ", a, " is ", size, ", expected ",
                axes[a].size);
        continue;
      }
      // The first place of a name lies here or before, so its rank has been checked.
      const std::int64_t expected = inputs[axes[a].input].dims[axes[a].axis];
      if (size == expected) continue;
      fail(ErrorCode::kInvalidArgument, "input ", Quoted{input_name(graph, i)}, " axis ", a, " is ", size,
           ", expected ", printable(*axes[a].name), " = ", expected, " as in input ",
           Quoted{input_name(graph, axes[a].input)}, " axis ", axes[a].axis);
    }
    element_count(input.dims);
  }
}

template void InputRules::check_shapes(const Graph&, std::span<const TensorInfo>) const;
template void InputRules::check_shapes(const Graph&, std::span<const ConstTensorView>) const;

}  // namespace headway
