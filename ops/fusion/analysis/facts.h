// What is known of a value before any shape is: element type, dims as expressions, and the elements of short integer
// lists, which is what shape arithmetic is made of. Decides nothing that a run could contradict; where it does not know
// an operator it knows nothing of its outputs.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "ops/fusion/analysis/dim.h"
#include "ops/fusion/analysis/draft.h"

namespace headway::fusion {

using DimList = std::vector<Dim>;

struct Fact {
  std::optional<DataType> type;
  std::optional<DimList> dims;      ///< absent: rank unknown
  std::optional<DimList> elements;  ///< of integers and bools of rank 0 or 1, at most 16; bools are 0 or 1
  int rank() const { return dims ? static_cast<int>(dims->size()) : -1; }
};

class Facts {
 public:
  /// `draft` must outlive the object. A value is looked at when it is first asked for: ask front to back.
  explicit Facts(const Draft& draft);

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
  friend class FactRules;
  void derive(int node);
  void name_elements(ValueId value, Fact* fact);

  const Draft& draft_;
  Unknowns unknowns_;
  std::deque<std::optional<Fact>> facts_;  // by value; a deque, since rules hold one fact while they ask for another
};

/// Elements of a constant that may be a shape: integers or bools of rank 0 or 1, at most 16.
std::optional<DimList> constant_elements(const Tensor& tensor);
/// The one number that a constant of one element holds.
std::optional<double> constant_number(const Tensor& tensor);

}  // namespace headway::fusion
