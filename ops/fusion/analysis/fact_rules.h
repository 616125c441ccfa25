// What each operator makes of what is known of its inputs: one rule a group of operators, by ONNX's definitions.
#pragma once

#include <string>
#include <vector>

#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

class FactRules {
 public:
  FactRules(const Draft& draft, Facts* facts, Unknowns* unknowns, const Node& node)
      : draft_(draft), facts_(*facts), unknowns_(*unknowns), node_(node) {}

  /// A fact an output; fewer where nothing is known.
  std::vector<Fact> outputs();

 private:
  using Rule = void (FactRules::*)(Fact*);
  static Rule rule_of(const std::string& op);

  // The rules. The element type is that of the first input unless a rule sets it.
  void same(Fact* out);
  void elementwise(Fact* out);
  void comparison(Fact* out);
  void where(Fact* out);
  void cast(Fact* out);
  void shape(Fact* out);
  void reshape(Fact* out);
  void flatten(Fact* out);
  void squeeze(Fact* out);
  void unsqueeze(Fact* out);
  void transpose(Fact* out);
  void expand(Fact* out);
  void concat(Fact* out);
  void split(Fact* out);
  void slice(Fact* out);
  void gather(Fact* out);
  void gather_nd(Fact* out);
  void conv(Fact* out);
  void same_rank(Fact* out);
  void tile(Fact* out);
  void range(Fact* out);
  void constant_of_shape(Fact* out);
  void reduce(Fact* out);
  void matmul(Fact* out);
  void gemm(Fact* out);
  void linear(Fact* out);
  void attention(Fact* out);
  void native_attention(Fact* out);
  void microsoft_attention(Fact* out);

  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  const Fact& in(std::size_t i);
  /// Integers of an attribute, or of an input when it is there; nullopt when they are not all numbers.
  std::optional<std::vector<std::int64_t>> integers(std::size_t input, const char* attribute);
  Dim unknown(const char* what, int i);
  DimList unknown_dims(int rank);
  void cut(std::size_t i, std::size_t axis, std::int64_t step, Dim* size);
  std::optional<DimList> broadcast(const std::optional<DimList>& a, const std::optional<DimList>& b);
  std::optional<DimList> element_arithmetic();
  std::optional<Dim> arithmetic(const Dim& a, const Dim& b);

  const Draft& draft_;
  Facts& facts_;
  Unknowns& unknowns_;
  const Node& node_;
  std::vector<Fact> more_;  ///< facts of outputs after the first, by a rule that has them
};

}  // namespace headway::fusion
