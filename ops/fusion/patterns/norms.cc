// From the last node upwards.
#include "ops/fusion/patterns/norms.h"

#include <optional>
#include <utility>
#include <vector>

#include "ops/fusion/analysis/factors.h"

namespace headway::fusion {
namespace {

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
    const Node* node = draft_.maker(value, "ReduceMean");
    if (node == nullptr || node->attributes.integer("keepdims", 1) == 0) return kNoValue;
    std::vector<std::int64_t> axes = node->attributes.integers("axes");
    if (node->inputs.size() > 1 && node->inputs[1] != kNoValue) {
      const auto& elements = facts_.of(node->inputs[1]).elements;
      if (!elements || elements->size() != 1 || !(*elements)[0].is_number()) return kNoValue;
      axes = {(*elements)[0].factor};
    }
    const int rank = facts_.rank(node->inputs[0]);
    const bool last = axes.size() == 1 && (axes[0] == -1 || (rank > 0 && axes[0] == rank - 1));
    return last ? node->inputs[0] : kNoValue;
  }

 private:
  /// r of 1 / r.
  ValueId inverse(ValueId value) {
    if (const Node* node = draft_.maker(value, "Reciprocal")) return node->inputs[0];
    const Node* node = draft_.maker(value, "Div");
    return node != nullptr && facts_.scalar(node->inputs[0]) == 1.0 ? node->inputs[1] : kNoValue;
  }

  ValueId power(ValueId value, double exponent) {
    const Node* node = draft_.maker(value, "Pow");
    return node != nullptr && facts_.scalar(node->inputs[1]) == exponent ? node->inputs[0] : kNoValue;
  }

  std::optional<Normalised> with_root(ValueId x, ValueId root) {
    if (const Node* node = draft_.maker(root, "Sqrt")) return with_square(x, node->inputs[0]);
    return with_square(x, power(root, 0.5));
  }

  /// `square` is mean(x²) + ε of that x.
  std::optional<Normalised> with_square(ValueId x, ValueId square) {
    const Node* node = draft_.maker(square, "Add");
    if (node == nullptr) return std::nullopt;
    for (const std::size_t k : {0, 1}) {
      const auto epsilon = facts_.scalar(node->inputs[k]);
      if (!epsilon || !(*epsilon >= 0)) continue;
      const ValueId squared = mean_of(node->inputs[1 - k]);
      if (squared != kNoValue && base_of_power(draft_, &facts_, squared, 2) == x) return Normalised{x, *epsilon};
    }
    return std::nullopt;
  }

  const Draft& draft_;
  Facts& facts_;
};

/// A constant f32 [N] with N the last dim of x.
bool is_row(const Draft& draft, Facts* facts, ValueId constant, ValueId x) {
  const Tensor* tensor = draft.constant(constant);
  const auto width = facts->dim(x, -1);
  return tensor != nullptr && tensor->type() == DataType::kF32 && tensor->dims().rank() == 1 && width &&
         width->is(tensor->dims()[0]);
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
    if (facts->type(inputs[0]) != DataType::kF32) return false;
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
      const Node* centred = inner ? draft->maker(inner->x, "Sub") : nullptr;
      if (centred == nullptr || reader.mean_of(centred->inputs[1]) != centred->inputs[0]) continue;
      return replace("LayerNormalization", {centred->inputs[0], scaled->weight, last.inputs[1 - k]}, inner->epsilon);
    }
    return false;
  }
  const auto scaled = weighted(*draft, facts, result);
  const auto inner = scaled ? reader.normalised(scaled->value) : std::nullopt;
  if (!inner) return false;
  // Of a layer normalisation this is the inside; without a bias there is no node for it.
  if (const Node* centred = draft->maker(inner->x, "Sub")) {
    if (reader.mean_of(centred->inputs[1]) == centred->inputs[0]) return false;
  }
  return replace("RMSNormalization", {inner->x, scaled->weight}, inner->epsilon);
}

}  // namespace headway::fusion
