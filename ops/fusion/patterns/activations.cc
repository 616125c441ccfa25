// From the last product upwards.
#include "ops/fusion/patterns/activations.h"

#include <cmath>
#include <numbers>
#include <string>

#include "ops/fusion/analysis/factors.h"

namespace headway::fusion {
namespace {

/// True when `gate` is erf(x / √2).
bool is_erf_of(const Draft& draft, Facts* facts, ValueId gate, ValueId x) {
  const Node* erf = draft.maker(gate, "Erf");
  if (erf == nullptr) return false;
  const Factors inside = factors_of(draft, facts, erf->inputs[0]);
  return inside.values.size() == 1 && inside.values[0] == x && is_about(inside.number, 1 / std::numbers::sqrt2);
}

/// True when `sum` is x + 0.044715 · x³.
bool is_cubic_of(const Draft& draft, Facts* facts, ValueId sum, ValueId x) {
  const Node* add = draft.maker(sum, "Add");
  if (add == nullptr) return false;
  for (const std::size_t k : {0, 1}) {
    if (add->inputs[k] != x) continue;
    const Factors cube = factors_of(draft, facts, add->inputs[1 - k]);
    if (!is_about(cube.number, 0.044715)) continue;
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
  return inside.values.size() == 1 && is_about(inside.number, std::sqrt(2 / std::numbers::pi)) &&
         is_cubic_of(draft, facts, inside.values[0], x);
}

}  // namespace

bool fuse_gelu(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& last = draft->node(index);
  if (last.op != "Mul" && last.op != "Div") return false;
  const Factors product = factors_of(*draft, facts, last.outputs[0]);
  if (product.values.size() != 2 || !is_about(product.number, 0.5)) return false;
  for (const std::size_t k : {0, 1}) {
    const ValueId x = product.values[k];
    const ValueId gate = plus_number(*draft, facts, product.values[1 - k], 1);
    if (gate == kNoValue || facts->type(x) != DataType::kF32) continue;
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
