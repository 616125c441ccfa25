// The walk: each operator is a case of one function, and Add tries both of its sides.
#include "ops/fusion/attention/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/base/check.h"

namespace headway::fusion {
namespace {

/// What is outside of the place where the walk is.
struct Outside {
  double factor = 1;
  int depth = 0;
  bool run_time_factor = false;
};

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// A product as f32 gives it: too low is −inf.
double as_float(double x) { return x < std::numeric_limits<float>::lowest() ? kMinusInfinity : x; }

/// A fill so low that no score survives next to it.
bool hides(double fill) { return fill <= -1e3; }

/// What is added to a fill changes it, unless it is so low that rounding takes the sum back to it.
bool has_shallow_fill(const Scores& scores) {
  constexpr double kAbsorbs = -1e30;
  return std::any_of(scores.terms.begin(), scores.terms.end(),
                     [](const ScoreTerm& term) { return term.condition != kNoValue && term.fill > kAbsorbs; });
}

class Walk {
 public:
  Walk(const Draft& draft, Facts* facts, Failure* failure) : draft_(draft), facts_(*facts), failure_(*failure) {}

  bool up(ValueId value, Outside outside, Scores* scores) {
    const int index = draft_.producer(value);
    if (index < 0) return fail(outside, "the scores come from " + draft_.describe(value) + ", expected a MatMul");
    const Node& node = draft_.node(index);
    if (!draft_.has_one_consumer(value)) {
      return fail(outside, draft_.describe(value) + " has another consumer than the Softmax");
    }
    if (!node.guards.empty()) return fail(outside, draft_.describe(value) + " stands in a branch");
    ++outside.depth;
    if (node.op == "MatMul" || node.op == "Einsum") return product(index, outside, scores);
    if (node.op == "Mul") return multiplied(node, outside, scores);
    if (node.op == "Div") return divided_by(node, outside, scores);
    if (node.op == "Add") return added(node, outside, scores);
    if (node.op == "Sub") return subtracted(node, outside, scores);
    if (node.op == "Where") return filled(node, outside, scores);
    if (node.op == "Tanh") return capped(node, outside, scores);
    if (node.op == "Reshape") return reshaped(node, outside, scores);
    return fail(outside, draft_.describe(value) + " is no part of attention scores");
  }

 private:
  bool fail(const Outside& outside, const std::string& edge) {
    failure_.note(outside.depth, edge);
    return false;
  }

  /// A fill takes the place of a score; as a term of a sum it would let a mask below shine through where a row is
  /// hidden.
  bool masked_below(const Node& node, const Outside& outside) {
    return fail(outside, draft_.describe(node.outputs[0]) + " fills in over scores that have a mask already");
  }

  /// False for a single number without dims, which is no mask.
  bool has_rank(ValueId value) {
    const auto& dims = facts_.of(value).dims;
    return !dims || !dims->empty();
  }

  bool product(int index, const Outside& outside, Scores* scores) {
    const Node& node = draft_.node(index);
    if (node.inputs.size() != 2) return fail(outside, draft_.describe(node.outputs[0]) + " has not two operands");
    for (const ValueId operand : node.inputs) {
      if (draft_.constant(operand) != nullptr) {
        return fail(outside, draft_.describe(node.outputs[0]) + " multiplies by " + draft_.describe(operand) +
                                 ", expected queries and keys");
      }
    }
    scores->product = index;
    scores->scale = outside.factor;
    return true;
  }

  bool is_single(ValueId value) {
    const auto& dims = facts_.of(value).dims;
    if (!dims) return false;
    for (const Dim& dim : *dims) {
      if (!dim.is(1)) return false;
    }
    return true;
  }

  bool multiplied(const Node& node, Outside outside, Scores* scores) {
    for (const std::size_t k : {1, 0}) {
      if (const auto number = facts_.scalar(node.inputs[k])) {
        outside.factor *= *number;
        return up(node.inputs[1 - k], outside, scores);
      }
    }
    for (const std::size_t k : {1, 0}) {
      if (!is_single(node.inputs[k])) continue;
      outside.run_time_factor = true;
      if (!up(node.inputs[1 - k], outside, scores)) return false;
      scores->multipliers.push_back(node.inputs[k]);
      return true;
    }
    return fail(outside, draft_.describe(node.outputs[0]) + " multiplies by " + draft_.describe(node.inputs[1]) +
                             ", expected one number");
  }

  bool divided_by(const Node& node, Outside outside, Scores* scores) {
    if (const auto number = facts_.scalar(node.inputs[1])) {
      outside.factor /= *number;
      return up(node.inputs[0], outside, scores);
    }
    if (is_single(node.inputs[1])) {
      outside.run_time_factor = true;
      if (!up(node.inputs[0], outside, scores)) return false;
      scores->divisors.push_back(node.inputs[1]);
      return true;
    }
    return fail(outside, draft_.describe(node.outputs[0]) + " divides by " + draft_.describe(node.inputs[1]) +
                             ", expected one number");
  }

  bool added(const Node& node, const Outside& outside, Scores* scores) {
    if (outside.run_time_factor) {
      return fail(outside, draft_.describe(node.outputs[0]) + " stands inside of a scale that only the run knows");
    }
    for (const std::size_t k : {0, 1}) {
      if (!has_rank(node.inputs[1 - k])) continue;
      Scores inner;
      if (!up(node.inputs[k], outside, &inner)) continue;
      if (has_shallow_fill(inner)) return fail(outside, draft_.describe(node.outputs[0]) + " adds to a fill");
      inner.terms.push_back({.value = node.inputs[1 - k], .factor = outside.factor});
      *scores = std::move(inner);
      return true;
    }
    return false;
  }

  /// scores · b − (1 − b) · c with b of zeros and ones: a fill, as older exports of GPT-2 write it.
  bool subtracted(const Node& node, Outside outside, Scores* scores) {
    if (outside.run_time_factor) {
      return fail(outside, draft_.describe(node.outputs[0]) + " stands inside of a scale that only the run knows");
    }
    const Node* kept = draft_.maker(node.inputs[0], "Mul");
    if (kept != nullptr && draft_.has_one_consumer(node.inputs[0])) {
      for (const std::size_t k : {0, 1}) {
        const ValueId b = kept->inputs[k];
        const auto amount = fill_beside(b, node.inputs[1]);
        if (!amount || !hides(-*amount * outside.factor) || !is_zero_or_one(b)) continue;
        ++outside.depth;
        if (!up(kept->inputs[1 - k], outside, scores)) return false;
        if (!scores->terms.empty()) return masked_below(node, outside);
        scores->terms.push_back({.condition = b, .hides_when = false, .fill = as_float(-*amount * outside.factor)});
        return true;
      }
    }
    if (!up(node.inputs[0], outside, scores)) return false;
    if (has_shallow_fill(*scores)) return fail(outside, draft_.describe(node.outputs[0]) + " subtracts from a fill");
    scores->terms.push_back({.value = node.inputs[1], .factor = -outside.factor});
    return true;
  }

  /// c where `penalty` is (1 − b) · c; nullopt otherwise. In a file of static shapes both are constants by now.
  std::optional<double> fill_beside(ValueId b, ValueId penalty) {
    if (draft_.constant(penalty) != nullptr) return folded_fill(draft_.constant(b), *draft_.constant(penalty));
    const Node* fill = draft_.maker(penalty, "Mul");
    if (fill == nullptr) return std::nullopt;
    for (const std::size_t f : {0, 1}) {
      const auto amount = facts_.scalar(fill->inputs[1 - f]);
      const Node* inverse = draft_.maker(fill->inputs[f], "Sub");
      if (amount && inverse != nullptr && facts_.scalar(inverse->inputs[0]) == 1.0 && inverse->inputs[1] == b) {
        return amount;
      }
    }
    return std::nullopt;
  }

  static std::optional<double> folded_fill(const Tensor* kept, const Tensor& penalty) {
    if (kept == nullptr || kept->type() != DataType::kF32 || penalty.type() != DataType::kF32) return std::nullopt;
    if (!(kept->dims() == penalty.dims())) return std::nullopt;
    std::optional<double> amount;
    for (std::int64_t i = 0; i < kept->count(); ++i) {
      const auto taken = static_cast<double>(penalty.data<float>()[i]);
      const bool is_kept = kept->data<float>()[i] != 0;
      if (is_kept ? taken != 0 : amount && *amount != taken) return std::nullopt;
      if (!is_kept) amount = taken;
    }
    return amount;
  }

  /// Whether a value is made of a constant of zeros and ones, or of a bool, by what keeps elements as they are.
  bool is_zero_or_one(ValueId value) {
    for (int steps = 0; steps < 32; ++steps) {
      if (const Tensor* constant = draft_.constant(value)) {
        if (constant->type() == DataType::kBool) return true;
        if (constant->type() != DataType::kF32) return false;
        for (std::int64_t i = 0; i < constant->count(); ++i) {
          const float x = constant->data<float>()[i];
          if (x != 0 && x != 1) return false;
        }
        return true;
      }
      if (facts_.type(value) == DataType::kBool) return true;
      const int index = draft_.producer(value);
      if (index < 0) return false;
      const std::string& op = draft_.node(index).op;
      if (op != "Slice" && op != "Cast" && op != "Unsqueeze" && op != "Squeeze" && op != "Gather" && op != "Reshape" &&
          op != "Expand" && op != "Transpose" && op != "Trilu") {
        return false;
      }
      value = draft_.node(index).inputs[0];
    }
    return false;
  }

  bool filled(const Node& node, const Outside& outside, Scores* scores) {
    for (const std::size_t k : {2, 1}) {  // the side of the fill
      const auto fill = facts_.scalar(node.inputs[k]);
      if (!fill) continue;
      const double scaled = *fill * outside.factor;
      if (!hides(scaled)) {
        return fail(outside, draft_.describe(node.outputs[0]) + " fills in " + std::to_string(*fill) +
                                 ", expected a number so low that it hides");
      }
      if (!has_rank(node.inputs[0]))
        return fail(outside, draft_.describe(node.inputs[0]) + " is one bool for all scores");
      if (!up(node.inputs[3 - k], outside, scores)) return false;
      if (!scores->terms.empty() && as_float(scaled) > kMinusInfinity) return masked_below(node, outside);
      scores->terms.push_back({.condition = node.inputs[0], .hides_when = k == 1, .fill = as_float(scaled)});
      return true;
    }
    return fail(outside, draft_.describe(node.outputs[0]) + " chooses between two tensors, expected a fill");
  }

  bool capped(const Node& node, Outside outside, Scores* scores) {
    if (!(outside.factor > 0) || outside.run_time_factor) {
      return fail(outside, draft_.describe(node.outputs[0]) + " is no softcap");
    }
    const double cap = outside.factor;
    outside.factor = 1;
    if (!up(node.inputs[0], outside, scores)) return false;
    if (!scores->terms.empty() || scores->softcap != 0) {
      return fail(outside, draft_.describe(node.outputs[0]) + " caps masked scores, expected bare ones");
    }
    scores->softcap = cap;
    scores->scale *= cap;
    return true;
  }

  bool reshaped(const Node& node, const Outside& outside, Scores* scores) {
    if (!keeps_last_two(&facts_, node.inputs[0], node.outputs[0])) {
      return fail(outside, draft_.describe(node.outputs[0]) + " cannot be shown to leave queries and keys alone");
    }
    if (!up(node.inputs[0], outside, scores)) return false;
    scores->reshaped = true;
    for (const ValueId value : {node.inputs[0], node.outputs[0]}) {
      if (facts_.rank(value) == 4) scores->apart.push_back(value);
    }
    return true;
  }

  const Draft& draft_;
  Facts& facts_;
  Failure& failure_;
};

}  // namespace

bool read_scores(const Draft& draft, Facts* facts, ValueId input, Scores* scores, Failure* failure) {
  return Walk(draft, facts, failure).up(input, {}, scores);
}

bool keeps_last_two(Facts* facts, ValueId from, ValueId to) {
  const auto& a = facts->of(from).dims;
  const auto& b = facts->of(to).dims;
  if (!a || !b || a->size() < 3 || b->size() < 3 || a->size() > 4 || b->size() > 4) return false;
  return (*a)[a->size() - 1] == (*b)[b->size() - 1] && (*a)[a->size() - 2] == (*b)[b->size() - 2];
}

}  // namespace headway::fusion
