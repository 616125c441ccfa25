// ONNX's Attention as the operator of this library: its attributes and inputs, as far as that one has them.
#include <cmath>
#include <string>
#include <utility>

#include "ops/fusion/attention/attention_core.h"
#include "ops/fusion/attention/attention_node.h"

namespace headway::fusion {

int fuse_onnx_attention(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& node = draft->node(index);
  const Attributes& a = node.attributes;
  for (std::size_t i = 4; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) return -1;
  }
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (!draft->readers(node.outputs[i]).empty() || draft->is_output(node.outputs[i])) return -1;
  }
  const std::int64_t precision = a.integer("softmax_precision", 0);
  if (precision == 10 || precision == 16 || !node.guards.empty()) return -1;
  AttentionParts parts;
  for (const auto& [operand, i] : {std::pair(&parts.query, 0), {&parts.key, 1}, {&parts.value, 2}}) {
    operand->value = node.inputs[static_cast<std::size_t>(i)];
    operand->axes = {0, 1, 2, 3};
    operand->takes_scale = i != 2;
    if (facts->rank(operand->value) != 4 || facts->type(operand->value) != DataType::kF32) return -1;
    *operand = peel(*draft, facts, *operand);
  }
  if (node.inputs.size() > 3 && node.inputs[3] != kNoValue) {
    const auto type = facts->type(node.inputs[3]);
    if (type != DataType::kBool && type != DataType::kF32) return -1;
    if (facts->rank(node.inputs[3]) < 1) return -1;
    parts.mask = {node.inputs[3], false, type == DataType::kBool ? "bool" : "float"};
  }
  const auto width = facts->dim(node.inputs[0], 3);
  if (!a.has("scale") && (!width || !width->is_number() || width->factor < 1)) return -1;
  parts.scale =
      a.has("scale") ? static_cast<double>(a.real("scale", 1)) : 1 / std::sqrt(static_cast<double>(width->factor));
  parts.scale *= parts.query.scale * parts.key.scale;
  parts.attributes.set("softcap", a.real("softcap", 0));
  parts.attributes.set("empty_row", std::string("zero"));
  parts.attributes.set("broadcast", std::int64_t{0});
  if (a.integer("is_causal", 0) != 0) parts.attributes.set("causal", std::string("top_left"));
  parts.attributes.set("window_left", a.integer("left_window_size", -1));
  parts.attributes.set("window_right", a.integer("right_window_size", -1));
  parts.out = node.outputs[0];
  parts.out_axes = {0, 1, 2, 3};
  parts.name = node.name;
  parts.before = index;
  const int made = make_attention(parts, draft, facts, group);
  if (a.integer("is_causal", 0) != 0) group->mask = group->mask == "none" ? "causal" : group->mask + " and causal";
  return made;
}

}  // namespace headway::fusion
