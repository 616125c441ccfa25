// From the last product upwards. In f32, f16 and bf16: narrow types are then rounded once instead of at every step.
#include "ops/fusion/patterns/activations.h"

#include <cmath>
#include <numbers>
#include <string>

#include "ops/fusion/analysis/factors.h"

namespace headway::fusion {
namespace {

bool is_up_to_f32(std::optional<DataType> type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16;
}

/// True when `gate` is erf(x / √2).
bool is_erf_of(const Draft& draft, Facts* facts, ValueId gate, ValueId x) {
  const Node* erf = draft.maker(gate, "Erf");
  if (erf == nullptr) return false;
  const Factors inside = factors_of(draft, facts, erf->inputs[0]);
  return inside.values.size() == 1 && inside.values[0] == x &&
         is_about(inside.number, 1 / std::numbers::sqrt2, facts->type(x));
}

/// True when `sum` is x + 0.044715 · x³.
bool is_cubic_of(const Draft& draft, Facts* facts, ValueId sum, ValueId x) {
  const Node* add = draft.maker(sum, "Add");
  if (add == nullptr) return false;
  for (const std::size_t k : {0, 1}) {
    if (add->inputs[k] != x) continue;
    const Factors cube = factors_of(draft, facts, add->inputs[1 - k]);
    if (!is_about(cube.number, 0.044715, facts->type(x))) continue;
    if (cube.values.size() == 1 && base_of_power(draft, facts, cube.values[0], 3) == x) return true;
    if (cube.values.size() == 3 && cube.values[0] == x && cube.values[1] == x && cube.values[2] == x) return true;
    if (cube.values.size() == 2) {
      for (const std::size_t i : {0, 1}) {
        const bool rest = base_of_power(draft, facts, cube.values[1 - i], 2) == x;
        if (cube.values[i] == x && rest) return true;
      }
    }
  }
  return false;
}

/// True when `gate` is tanh(√(2/π) · (x + 0.044715 · x³)).
bool is_tanh_of(const Draft& draft, Facts* facts, ValueId gate, ValueId x) {
  const Node* tanh = draft.maker(gate, "Tanh");
  if (tanh == nullptr) return false;
  const Factors inside = factors_of(draft, facts, tanh->inputs[0]);
  return inside.values.size() == 1 && is_about(inside.number, std::sqrt(2 / std::numbers::pi), facts->type(x)) &&
         is_cubic_of(draft, facts, inside.values[0], x);
}

}  // namespace

bool fuse_swish(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& last = draft->node(index);
  if (last.op != "Mul") return false;
  for (const std::size_t k : {0, 1}) {
    const ValueId x = last.inputs[k];
    const Node* gate = draft->maker(last.inputs[1 - k], "Sigmoid");
    const bool narrow = facts->type(x) == DataType::kF16 || facts->type(x) == DataType::kBF16;
    if (gate == nullptr || gate->inputs[0] != x || !narrow) continue;
    const ValueId result = last.outputs[0];
    draft->replace(result, draft->add_node({"Swish", last.name, {x}, {}, 1, index}).front());
    *group = {.node = last.name, .kind = "Swish", .mask = ""};
    return true;
  }
  return false;
}

bool fuse_gelu(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& last = draft->node(index);
  if (last.op != "Mul" && last.op != "Div") return false;
  const Factors product = factors_of(*draft, facts, last.outputs[0]);
  if (product.values.size() != 2 || !is_about(product.number, 0.5)) return false;
  for (const std::size_t k : {0, 1}) {
    const ValueId x = product.values[k];
    const ValueId gate = plus_number(*draft, facts, product.values[1 - k], 1);
    if (gate == kNoValue || !is_up_to_f32(facts->type(x))) continue;
    const bool exact = is_erf_of(*draft, facts, gate, x);
    if (!exact && !is_tanh_of(*draft, facts, gate, x)) continue;
    const std::string approximate = exact ? "none" : "tanh";
    const ValueId result = last.outputs[0];
    const ValueId fused = draft->add_node({"Gelu", last.name, {x}, {{"approximate", approximate}}, 1, index}).front();
    draft->replace(result, fused);
    *group = {.node = last.name, .kind = "Gelu", .mask = ""};
    return true;
  }
  return false;
}

}  // namespace headway::fusion
