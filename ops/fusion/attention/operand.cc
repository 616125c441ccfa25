// One function a step; peel() takes steps until none applies.
#include "ops/fusion/attention/operand.h"

#include <algorithm>

namespace headway::fusion {
namespace {

bool scale_step(const Draft& draft, Facts* facts, Operand* operand) {
  if (!operand->takes_scale) return false;
  if (const Node* node = draft.maker(operand->value, "Mul")) {
    for (const std::size_t k : {1, 0}) {
      const auto number = facts->scalar(node->inputs[k]);
      // A constant of more axes than the other operand would add some.
      if (!number || facts->rank(node->inputs[1 - k]) != operand->rank()) continue;
      operand->scale *= *number;
      operand->value = node->inputs[1 - k];
      return true;
    }
  }
  if (const Node* node = draft.maker(operand->value, "Div")) {
    const auto number = facts->scalar(node->inputs[1]);
    if (!number || facts->rank(node->inputs[0]) != operand->rank()) return false;
    operand->scale /= *number;
    operand->value = node->inputs[0];
    return true;
  }
  return false;
}

/// Axis i of what goes in is axis perm[i] of what is there before the Transpose.
std::optional<std::vector<std::int64_t>> through_transpose(const Node& node, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> perm = node.attributes.integers("perm");
  if (perm.size() != axes.size()) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const std::int64_t axis : axes) result.push_back(perm[static_cast<std::size_t>(axis)]);
  return result;
}

bool transpose_step(const Draft& draft, Operand* operand) {
  const Node* node = draft.maker(operand->value, "Transpose");
  if (node == nullptr) return false;
  const auto axes = through_transpose(*node, operand->axes);
  if (!axes) return false;
  operand->axes = *axes;
  operand->value = node->inputs[0];
  return true;
}

/// [B, H, S, D] -> Reshape -> [B·H, S, D], read backwards.
bool join_step(const Draft& draft, Facts* facts, Operand* operand) {
  const Node* node = draft.maker(operand->value, "Reshape");
  if (node == nullptr || !operand->comes_apart || operand->rank() != 3 || operand->axes[0] != 0) return false;
  const auto& whole = facts->of(node->inputs[0]).dims;
  const auto& joined = facts->of(operand->value).dims;
  if (!whole || !joined || whole->size() != 4 || joined->size() != 3) return false;
  if ((*joined)[1] != (*whole)[2] || (*joined)[2] != (*whole)[3]) return false;
  operand->value = node->inputs[0];
  operand->axes = {0, 1, operand->axes[1] + 1, operand->axes[2] + 1};
  return true;
}

/// [B, H, S, D] -> Reshape [B·H, S, D] -> Transpose(0, 2, 1) or scale -> Reshape [B, H, D, S], read backwards.
bool sandwich_step(const Draft& draft, Facts* facts, Operand* operand) {
  const Node* node = draft.maker(operand->value, "Reshape");
  if (node == nullptr || operand->rank() != 4 || operand->axes[0] != 0 || operand->axes[1] != 1) return false;
  const auto outer = facts->of(operand->value).dims;
  const auto& joined = facts->of(node->inputs[0]).dims;
  if (!outer || !joined || outer->size() != 4 || joined->size() != 3) return false;
  if ((*outer)[2] != (*joined)[1] || (*outer)[3] != (*joined)[2]) return false;
  Operand inner{node->inputs[0], {0, operand->axes[2] - 1, operand->axes[3] - 1}, operand->scale, operand->takes_scale};
  while (scale_step(draft, facts, &inner) || transpose_step(draft, &inner)) {
  }
  if (!join_step(draft, facts, &inner)) return false;
  const auto& whole = facts->of(inner.value).dims;
  if ((*whole)[0] != (*outer)[0] || (*whole)[1] != (*outer)[1]) return false;
  *operand = inner;
  return true;
}

}  // namespace

bool Operand::in_order() const { return std::is_sorted(axes.begin(), axes.end()); }

Operand peel(const Draft& draft, Facts* facts, Operand operand) {
  while (scale_step(draft, facts, &operand) || transpose_step(draft, &operand) || join_step(draft, facts, &operand) ||
         sandwich_step(draft, facts, &operand)) {
  }
  return operand;
}

std::optional<Operand> without_repeats(const Draft& draft, Facts* facts, const Operand& operand,
                                       std::int64_t* repeats) {
  // x [B, Hkv, S, D] -> Unsqueeze(2) -> Expand [B, Hkv, G, S, D] -> Reshape [B, Hkv·G, S, D]
  if (operand.rank() != 4 || operand.axes[1] != 1) return std::nullopt;
  const Node* reshape = draft.maker(operand.value, "Reshape");
  const Node* expand = reshape != nullptr ? draft.maker(reshape->inputs[0], "Expand") : nullptr;
  const Node* unsqueeze = expand != nullptr ? draft.maker(expand->inputs[0], "Unsqueeze") : nullptr;
  if (unsqueeze == nullptr) return std::nullopt;
  const ValueId source = unsqueeze->inputs[0];
  const auto from = facts->of(source).dims;
  const auto one = facts->of(unsqueeze->outputs[0]).dims;
  const auto many = facts->of(expand->outputs[0]).dims;
  const auto joined = facts->of(operand.value).dims;
  if (!from || !one || !many || !joined || from->size() != 4 || many->size() != 5 || joined->size() != 4) {
    return std::nullopt;
  }
  const DimList unsqueezed{(*from)[0], (*from)[1], 1, (*from)[2], (*from)[3]};
  if (*one != unsqueezed || !(*many)[2].is_number() || (*many)[2].factor < 1) return std::nullopt;
  // Nothing else may be expanded or named anew.
  if (*many != DimList{(*from)[0], (*from)[1], (*many)[2], (*from)[2], (*from)[3]}) return std::nullopt;
  if (*joined != DimList{(*from)[0], (*from)[1] * (*many)[2], (*from)[2], (*from)[3]}) return std::nullopt;
  *repeats = (*many)[2].factor;
  return peel(draft, facts, {source, operand.axes, operand.scale, operand.takes_scale});
}

std::optional<Dim> operand_dim(Facts* facts, const Operand& operand, int axis) {
  return facts->dim(operand.value, static_cast<int>(operand.axes[static_cast<std::size_t>(axis)]));
}

}  // namespace headway::fusion
