// From the last node upwards. Narrow types too: their squares overflow and each step rounds, where the one operator
// computes in f32 and rounds once. Casts to f32 and back inside the pattern are part of it.
#include "ops/fusion/patterns/norms.h"

#include <optional>
#include <utility>
#include <vector>

#include "ops/fusion/analysis/factors.h"

namespace headway::fusion {
namespace {

bool is_narrow(std::optional<DataType> type) { return type == DataType::kF16 || type == DataType::kBF16; }
bool is_up_to_f32(std::optional<DataType> type) { return type == DataType::kF32 || is_narrow(type); }

/// What a Cast between f32 and narrow types reads; any other value itself.
ValueId past_cast(const Draft& draft, Facts* facts, ValueId value) {
  const Node* node = draft.maker(value, "Cast");
  const bool numbers =
      node != nullptr && is_up_to_f32(facts->type(value)) && is_up_to_f32(facts->type(node->inputs[0]));
  return numbers ? node->inputs[0] : value;
}
/// The same of a Cast that loses nothing, which is all that may be left out of what a pattern reads.
ValueId past_widening(const Draft& draft, Facts* facts, ValueId value) {
  return facts->type(value) == DataType::kF32 ? past_cast(draft, facts, value) : value;
}

/// x normalised by its own mean square, before the weights.
struct Normalised {
  ValueId x = kNoValue;
  double epsilon = 0;
};

class NormReader {
 public:
  NormReader(const Draft& draft, Facts* facts) : draft_(draft), facts_(*facts) {}

  /// x / √(mean(x²) + ε), as a quotient or as a product.
  std::optional<Normalised> normalised(ValueId value) {
    value = past_cast(draft_, &facts_, value);
    if (const Node* node = draft_.maker(value, "Div")) return with_root(node->inputs[0], node->inputs[1]);
    const Node* node = draft_.maker(value, "Mul");
    if (node == nullptr) return std::nullopt;
    for (const std::size_t k : {0, 1}) {
      if (const ValueId root = inverse(node->inputs[k]); root != kNoValue) {
        if (const auto found = with_root(node->inputs[1 - k], root)) return found;
      }
      if (const auto found = with_square(node->inputs[1 - k], power(node->inputs[k], -0.5))) return found;
    }
    return std::nullopt;
  }

  /// mean over the last axis, dims kept; its operand.
  ValueId mean_of(ValueId value) {
    value = past_cast(draft_, &facts_, value);
    const Node* node = draft_.maker(value, "ReduceMean");
    if (node == nullptr || node->attributes.integer("keepdims", 1) == 0) return kNoValue;
    std::vector<std::int64_t> axes;
    if (node->inputs.size() > 1 && node->inputs[1] != kNoValue) {
      const auto& elements = facts_.of(node->inputs[1]).elements;
      if (!elements || elements->size() != 1 || !(*elements)[0].is_number()) return kNoValue;
      axes = {(*elements)[0].factor};
    } else {
      axes = node->attributes.integers("axes");
    }
    const int rank = facts_.rank(node->inputs[0]);
    const bool last = axes.size() == 1 && (axes[0] == -1 || (rank > 0 && axes[0] == rank - 1));
    return last ? node->inputs[0] : kNoValue;
  }

  /// The rows of which `value` is the distance from their mean; kNoValue: it is none.
  ValueId centred(ValueId value) {
    const Node* node = draft_.maker(past_cast(draft_, &facts_, value), "Sub");
    if (node == nullptr) return kNoValue;
    const ValueId averaged = mean_of(node->inputs[1]);
    if (averaged == kNoValue) return kNoValue;
    const bool own = past_widening(draft_, &facts_, averaged) == past_widening(draft_, &facts_, node->inputs[0]);
    return own ? node->inputs[0] : kNoValue;
  }

 private:
  /// r of 1 / r.
  ValueId inverse(ValueId value) {
    value = past_cast(draft_, &facts_, value);
    if (const Node* node = draft_.maker(value, "Reciprocal")) return node->inputs[0];
    const Node* node = draft_.maker(value, "Div");
    return node != nullptr && facts_.scalar(node->inputs[0]) == 1.0 ? node->inputs[1] : kNoValue;
  }

  ValueId power(ValueId value, double exponent) {
    const Node* node = draft_.maker(value, "Pow");
    return node != nullptr && facts_.scalar(node->inputs[1]) == exponent ? node->inputs[0] : kNoValue;
  }

  std::optional<Normalised> with_root(ValueId x, ValueId root) {
    root = past_cast(draft_, &facts_, root);
    if (const Node* node = draft_.maker(root, "Sqrt")) return with_square(x, node->inputs[0]);
    return with_square(x, power(root, 0.5));
  }

  /// `square` is mean(x²) + ε of that x.
  std::optional<Normalised> with_square(ValueId x, ValueId square) {
    square = past_cast(draft_, &facts_, square);
    const Node* node = draft_.maker(square, "Add");
    if (node == nullptr) return std::nullopt;
    for (const std::size_t k : {0, 1}) {
      const auto epsilon = facts_.scalar(node->inputs[k]);
      if (!epsilon || !(*epsilon >= 0)) continue;
      const ValueId squared = mean_of(node->inputs[1 - k]);
      if (squared == kNoValue) continue;
      // Either may be read through a Cast of its own.
      const ValueId base = base_of_power(draft_, &facts_, past_cast(draft_, &facts_, squared), 2);
      if (base == kNoValue) continue;
      if (past_widening(draft_, &facts_, base) == past_widening(draft_, &facts_, x)) return Normalised{x, *epsilon};
    }
    return std::nullopt;
  }

  const Draft& draft_;
  Facts& facts_;
};

/// A constant [N] of x's type with N the last dim of x.
bool is_row(const Draft& draft, Facts* facts, ValueId constant, ValueId x) {
  const Tensor* tensor = draft.constant(constant);
  const auto width = facts->dim(x, -1);
  return tensor != nullptr && is_up_to_f32(tensor->type()) && tensor->type() == facts->type(x) &&
         tensor->dims().rank() == 1 && width && width->is(tensor->dims()[0]);
}

/// y · w or w · y with w of the length of y's last axis.
struct Weighted {
  ValueId value = kNoValue, weight = kNoValue;
};
std::optional<Weighted> weighted(const Draft& draft, Facts* facts, ValueId value) {
  const Node* node = draft.maker(value, "Mul");
  if (node == nullptr) return std::nullopt;
  for (const std::size_t k : {0, 1}) {
    if (is_row(draft, facts, node->inputs[k], node->inputs[1 - k]))
      return Weighted{node->inputs[1 - k], node->inputs[k]};
  }
  return std::nullopt;
}

}  // namespace

bool fuse_norm(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& last = draft->node(index);
  if (last.op != "Mul" && last.op != "Add") return false;
  NormReader reader(*draft, facts);
  const ValueId result = last.outputs[0];
  const auto replace = [&](const char* op, std::vector<ValueId> inputs, double epsilon) {
    // In the type of the result, f32 rows read before they are widened if that is narrow.
    const auto type = facts->type(result);
    if (facts->type(inputs[0]) != type) inputs[0] = past_widening(*draft, facts, inputs[0]);
    if (!is_up_to_f32(type) || facts->type(inputs[0]) != type) return false;
    const ValueId fused =
        draft
            ->add_node({op,
                        last.name,
                        std::move(inputs),
                        {{"axis", Attribute(std::int64_t{-1})}, {"epsilon", static_cast<float>(epsilon)}},
                        1,
                        index})
            .front();
    draft->replace(result, fused);
    *group = {.node = last.name, .kind = op, .mask = ""};
    return true;
  };

  if (last.op == "Add") {
    for (const std::size_t k : {0, 1}) {
      const auto scaled = weighted(*draft, facts, last.inputs[k]);
      if (!scaled || !is_row(*draft, facts, last.inputs[1 - k], last.inputs[k])) continue;
      const auto inner = reader.normalised(scaled->value);
      const ValueId rows = inner ? reader.centred(inner->x) : kNoValue;
      if (rows == kNoValue) continue;
      return replace("LayerNormalization", {rows, scaled->weight, last.inputs[1 - k]}, inner->epsilon);
    }
    return false;
  }
  const auto scaled = weighted(*draft, facts, result);
  const auto inner = scaled ? reader.normalised(scaled->value) : std::nullopt;
  if (!inner) return false;
  const ValueId rows = reader.centred(inner->x);
  if (rows == kNoValue) return replace("RMSNormalization", {inner->x, scaled->weight}, inner->epsilon);
  // Of a layer normalisation with a bias this is the inside.
  if (draft->has_one_consumer(result)) {
    const Node& reader_of_it = draft->node(draft->consumers(result)[0]);
    for (const ValueId other : reader_of_it.inputs) {
      if (reader_of_it.op == "Add" && other != result && is_row(*draft, facts, other, result)) return false;
    }
  }
  return replace("LayerNormalization", {rows, scaled->weight}, inner->epsilon);
}

}  // namespace headway::fusion
