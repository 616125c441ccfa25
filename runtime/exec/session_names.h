// The inputs and outputs of a graph by name: their places, and the named tensors of a run in the graph's order. Knows
// no plan.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headway/session.h"

namespace headway {

/// Names of one kind, "input" or "output", in the graph's order.
class NameOrder {
 public:
  NameOrder(const char* kind, std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  /// Throws kInvalidArgument listing the names that there are.
  std::size_t index(std::string_view name) const;
  /// The views in the graph's order. Throws kInvalidArgument for a name that is unknown, missing or given twice.
  std::vector<ConstTensorView> ordered(std::span<const NamedInput> given) const;
  std::vector<TensorView> ordered(std::span<const NamedOutput> given) const;

 private:
  template <class View, class Named>
  std::vector<View> in_order(std::span<const Named> given) const;

  const char* kind_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

class SessionNames {
 public:
  explicit SessionNames(const Graph& graph);
  const NameOrder& inputs() const { return inputs_; }
  const NameOrder& outputs() const { return outputs_; }
  const std::vector<InputInfo>& input_infos() const { return input_infos_; }

 private:
  NameOrder inputs_;
  NameOrder outputs_;
  std::vector<InputInfo> input_infos_;
};

}  // namespace headway
