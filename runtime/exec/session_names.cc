// Look-up by name, and its messages.
#include "runtime/exec/session_names.h"

#include <utility>

#include "runtime/base/check.h"

namespace headway {
namespace {

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs()) names.push_back(graph.value_name(input.value));
  return names;
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Output& output : graph.outputs()) names.push_back(output.name);
  return names;
}

}  // namespace

NameOrder::NameOrder(const char* kind, std::vector<std::string> names) : kind_(kind), names_(std::move(names)) {
  for (std::size_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], i);
}

std::size_t NameOrder::index(std::string_view name) const {
  if (const auto found = index_.find(name); found != index_.end()) return found->second;
  std::string known;
  for (const std::string& one : names_) known += (known.empty() ? "'" : ", '") + one + '\'';
  fail(ErrorCode::kInvalidArgument, "the graph has no ", kind_, " '", name, "', expected one of ",
       known.empty() ? "none" : known);
}

template <class View, class Named>
std::vector<View> NameOrder::in_order(std::span<const Named> given) const {
  std::vector<View> views(names_.size());
  std::vector<bool> seen(names_.size());
  for (const Named& one : given) {
    const std::size_t i = index(one.name);
    require(!seen[i], kind_, " '", one.name, "' is given twice, expected once");
    seen[i] = true;
    views[i] = one.view;
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    require(seen[i], kind_, " '", names_[i], "' is missing: ", given.size(), " given, expected ", names_.size());
  }
  return views;
}

std::vector<ConstTensorView> NameOrder::ordered(std::span<const NamedInput> given) const {
  return in_order<ConstTensorView>(given);
}

std::vector<TensorView> NameOrder::ordered(std::span<const NamedOutput> given) const {
  return in_order<TensorView>(given);
}

SessionNames::SessionNames(const Graph& graph)
    : inputs_("input", input_names(graph)), outputs_("output", output_names(graph)) {
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    input_infos_.push_back({inputs_.names()[i], input.type, input.dims});
  }
}

}  // namespace headway
