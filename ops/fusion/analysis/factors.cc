// Small readers that patterns of norms and activations share.
#include "ops/fusion/analysis/factors.h"

#include <cmath>

namespace headway::fusion {
namespace {

void collect(const Draft& draft, Facts* facts, ValueId value, bool top, int depth, Factors* factors) {
  if (const auto number = facts->scalar(value)) {
    factors->number *= *number;
    return;
  }
  const bool open = depth < 8 && (top || draft.has_one_consumer(value));
  if (const Node* node = open ? draft.maker(value, "Mul") : nullptr) {
    collect(draft, facts, node->inputs[0], false, depth + 1, factors);
    collect(draft, facts, node->inputs[1], false, depth + 1, factors);
    return;
  }
  if (const Node* node = open ? draft.maker(value, "Div") : nullptr) {
    if (const auto number = facts->scalar(node->inputs[1])) {
      factors->number /= *number;
      collect(draft, facts, node->inputs[0], false, depth + 1, factors);
      return;
    }
  }
  factors->values.push_back(value);
}

}  // namespace

Factors factors_of(const Draft& draft, Facts* facts, ValueId value) {
  Factors factors;
  collect(draft, facts, value, true, 0, &factors);
  return factors;
}

bool is_about(double number, double expected, std::optional<DataType> type) {
  const double step = type == DataType::kF16 ? 0x1p-10 : type == DataType::kBF16 ? 0x1p-7 : 1e-6;
  return std::fabs(number - expected) <= step * std::fabs(expected);
}

ValueId plus_number(const Draft& draft, Facts* facts, ValueId value, double number) {
  const Node* node = draft.maker(value, "Add");
  if (node == nullptr) return kNoValue;
  for (const std::size_t k : {0, 1}) {
    const auto found = facts->scalar(node->inputs[k]);
    if (found && is_about(*found, number)) return node->inputs[1 - k];
  }
  return kNoValue;
}

ValueId base_of_power(const Draft& draft, Facts* facts, ValueId value, int power) {
  if (const Node* node = draft.maker(value, "Pow")) {
    return facts->scalar(node->inputs[1]) == static_cast<double>(power) ? node->inputs[0] : kNoValue;
  }
  const Node* node = draft.maker(value, "Mul");
  if (node == nullptr) return kNoValue;
  if (power == 2) return node->inputs[0] == node->inputs[1] ? node->inputs[0] : kNoValue;
  for (const std::size_t k : {0, 1}) {
    if (base_of_power(draft, facts, node->inputs[k], power - 1) == node->inputs[1 - k]) return node->inputs[1 - k];
  }
  return kNoValue;
}

}  // namespace headway::fusion
