// What is known of a value before any shape is: what its operator's own rule says, kept. Decides nothing that a run
// could contradict, as long as equal names of the graph's inputs are equal sizes.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "headway/operator.h"
#include "headway/shape.h"
#include "ops/fusion/analysis/draft.h"

namespace headway::fusion {

using Fact = ValueInfo;

class Facts {
 public:
  /// Both must outlive the object. A value is looked at when it is first asked for: ask front to back. Throws what the
  /// rules throw, with the node named.
  Facts(const Registry& registry, const Draft& draft);

  const Fact& of(ValueId value);
  std::optional<DataType> type(ValueId value) { return of(value).type; }
  int rank(ValueId value) { return of(value).rank(); }
  /// A dim counted from the front, or with a negative axis from the back; nullopt when the rank is not known or short.
  std::optional<Dim> dim(ValueId value, int axis);
  /// True when both ranks are known and all dims are equal.
  bool same_dims(ValueId a, ValueId b);
  /// The number of a constant of one element and any numeric type.
  std::optional<double> scalar(ValueId value) const;
  bool is_size(const Dim& dim) const { return unknowns_.is_size(dim); }

 private:
  void derive(int node);
  std::vector<Fact> inferred(int node);
  void name_elements(ValueId value, Fact* fact);

  const Registry& registry_;
  const Draft& draft_;
  const int given_nodes_;  // the nodes after them are made by fusion
  Unknowns unknowns_;
  std::deque<std::optional<Fact>> facts_;  // by value
};

/// Elements of a constant that may be a shape: integers or bools of rank 0 or 1, at most 16.
std::optional<DimList> constant_elements(const Tensor& tensor);
/// The one number that a constant of one element holds.
std::optional<double> constant_number(const Tensor& tensor);

}  // namespace headway::fusion
