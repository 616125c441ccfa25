// Terms to nodes. The file is the truth: a fill of −inf hides, a finite one is a number like any other.
#include "ops/fusion/attention/mask.h"

#include <cmath>
#include <limits>

namespace headway::fusion {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr int kDeep = 1000;  // the scores were read to the end: this reason is the one to show

/// A bool of which one side hides.
struct BoolMask {
  ValueId value;
  bool true_hides;
};

class MaskMaker {
 public:
  MaskMaker(const MaskPlace& place, Draft* draft, Facts* facts, Failure* failure)
      : place_(place), draft_(*draft), facts_(*facts), failure_(*failure) {}

  std::optional<MaskInput> make(const Scores& scores) {
    std::vector<const ScoreTerm*> terms;
    for (const ScoreTerm& term : scores.terms) {
      if (!is_zero(term)) terms.push_back(&term);
    }
    if (terms.empty()) return MaskInput{};
    for (const ScoreTerm* term : terms) {
      if (!can_be_mask(*term)) return std::nullopt;
    }
    if (terms.size() == 1) {
      if (const auto mask = as_bool(*terms[0])) return MaskInput{mask->value, mask->true_hides, "bool"};
    }
    ValueId sum = kNoValue;
    for (const ScoreTerm* term : terms) {
      const ValueId one = as_float(*term);
      sum = sum == kNoValue ? one : add("Add", {sum, one});
    }
    return MaskInput{sum, false, "float"};
  }

 private:
  bool is_hidden(ValueId value) const { return facts_.scalar(value) == static_cast<double>(kHidden); }

  /// A constant zero, or one expanded.
  bool is_zero(const ScoreTerm& term) const {
    if (term.value == kNoValue) return false;
    ValueId value = term.value;
    if (const Node* expand = draft_.maker(value, "Expand")) value = expand->inputs[0];
    const Tensor* constant = draft_.constant(value);
    if (constant == nullptr || constant->type() != DataType::kF32) return false;
    for (std::int64_t i = 0; i < constant->count(); ++i) {
      if (constant->data<float>()[i] != 0) return false;
    }
    return true;
  }

  bool can_be_mask(const ScoreTerm& term) {
    const ValueId value = term.value != kNoValue ? term.value : term.condition;
    const int rank = facts_.rank(value);
    if (rank > place_.rank) {
      failure_.note(kDeep, draft_.describe(value) + " is a mask of rank " + std::to_string(rank) +
                               ", expected at most " + std::to_string(place_.rank));
      return false;
    }
    if (rank < 0) {
      failure_.note(kDeep, draft_.describe(value) + " is a mask of unknown rank");
      return false;
    }
    if (place_.joined && rank == 3 && !facts_.dim(value, 0)->is(1)) {
      failure_.note(kDeep, draft_.describe(value) + " is a mask of joined batch and heads");
      return false;
    }
    if (term.value != kNoValue && facts_.type(value) != DataType::kF32) {
      failure_.note(kDeep, draft_.describe(value) + " is a mask that cannot be shown to be f32");
      return false;
    }
    return true;
  }

  std::optional<BoolMask> as_bool(const ScoreTerm& term) {
    if (term.value == kNoValue) {
      if (term.fill != static_cast<double>(kHidden) || facts_.type(term.condition) != DataType::kBool) {
        return std::nullopt;
      }
      return BoolMask{term.condition, term.hides_when};
    }
    const Node* where = draft_.maker(term.value, "Where");
    if (where == nullptr || !(term.factor > 0) || facts_.rank(where->inputs[0]) < 0) return std::nullopt;
    const bool keeps_if_true = facts_.scalar(where->inputs[1]) == 0.0 && is_hidden(where->inputs[2]);
    const bool hides_if_true = is_hidden(where->inputs[1]) && facts_.scalar(where->inputs[2]) == 0.0;
    if (!keeps_if_true && !hides_if_true) return std::nullopt;
    return BoolMask{where->inputs[0], hides_if_true};
  }

  ValueId as_float(const ScoreTerm& term) {
    if (term.value == kNoValue) {
      ValueId condition = term.condition;
      if (facts_.type(condition) != DataType::kBool) {
        condition = add("Cast", {condition}, {{"to", Attribute(std::int64_t{9})}});
      }
      // Any fill replaces the scores: only one that no score survives next to does the same when it is added.
      const ValueId low = number(std::isinf(term.fill) ? kHidden : kLowest);
      const ValueId zero = number(0);
      return term.hides_when ? add("Where", {condition, low, zero}) : add("Where", {condition, zero, low});
    }
    if (term.factor == 1 || as_bool(term)) return term.value;
    return add("Mul", {term.value, number(static_cast<float>(term.factor))});
  }

  ValueId add(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return draft_.add_node({op, place_.name + "/mask", std::move(inputs), std::move(attributes), 1, place_.before})
        .front();
  }

  ValueId number(float value) { return draft_.number(value); }

  const MaskPlace& place_;
  Draft& draft_;
  Facts& facts_;
  Failure& failure_;
};

}  // namespace

std::optional<MaskInput> make_mask(const Scores& scores, const MaskPlace& place, Draft* draft, Facts* facts,
                                   Failure* failure) {
  return MaskMaker(place, draft, facts, failure).make(scores);
}

}  // namespace headway::fusion
