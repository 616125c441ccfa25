// Attributes and replacement.
#include "ops/fusion/attention/attention_node.h"

#include <algorithm>

namespace headway::fusion {
namespace {

void read_heads_once(const Draft& draft, Facts* facts, AttentionParts* parts) {
  std::int64_t key_repeats = 0;
  std::int64_t value_repeats = 0;
  const auto key = without_repeats(draft, facts, parts->key, &key_repeats);
  const auto value = without_repeats(draft, facts, parts->value, &value_repeats);
  if (!key || !value || key_repeats != value_repeats) return;
  parts->key = *key;
  parts->value = *value;
}

/// A Transpose that alone reads the result.
void take_transpose(const Draft& draft, AttentionParts* parts) {
  const std::vector<int> uses = draft.consumers(parts->out);
  if (uses.size() != 1 || draft.is_output(parts->out)) return;
  const Node& node = draft.node(uses[0]);
  if (node.op != "Transpose" || !node.guards.empty()) return;
  const std::vector<std::int64_t> perm = node.attributes.integers("perm");
  if (perm.size() != 4 || parts->out_axes.size() != 4) return;
  for (std::int64_t& axis : parts->out_axes) {
    axis = std::find(perm.begin(), perm.end(), axis) - perm.begin();
  }
  parts->out = node.outputs[0];
}

std::int64_t number_of(const std::optional<Dim>& dim) { return dim && dim->is_number() ? dim->factor : 0; }

void set_axes(const char* key, const std::vector<std::int64_t>& axes, Attributes* attributes) {
  if (axes.size() == 4 && !std::is_sorted(axes.begin(), axes.end())) attributes->set(key, axes);
}

}  // namespace

int make_attention(AttentionParts parts, Draft* draft, Facts* facts, FusedGroup* group) {
  read_heads_once(*draft, facts, &parts);
  take_transpose(*draft, &parts);
  // Rank 3 has no axes of its own in the operator: what is not in order there is put in order first.
  for (Operand* operand : {&parts.query, &parts.key, &parts.value}) {
    if (operand->rank() == 4 || operand->in_order()) continue;
    operand->value =
        draft
            ->add_node(
                {"Transpose", parts.name + "/axes", {operand->value}, {{"perm", operand->axes}}, 1, parts.before})
            .front();
    operand->axes = {0, 1, 2};
  }
  Attributes& a = parts.attributes;
  a.set("scale", static_cast<float>(parts.scale));
  if (parts.mask.true_hides) a.set("mask_polarity", std::string("true_hides"));
  if (parts.weights != kNoValue) a.set("scores", std::string("probabilities"));
  set_axes("query_axes", parts.query.axes, &a);
  set_axes("key_axes", parts.key.axes, &a);
  set_axes("value_axes", parts.value.axes, &a);
  set_axes("out_axes", parts.out_axes, &a);
  std::vector<ValueId> inputs{parts.query.value, parts.key.value, parts.value.value};
  if (parts.mask.value != kNoValue) inputs.push_back(parts.mask.value);
  const std::vector<ValueId> outputs = draft->add_node(
      {"Attention", parts.name, std::move(inputs), std::move(a), parts.weights != kNoValue ? 2 : 1, parts.before});
  draft->replace(parts.out, outputs[0]);
  if (parts.weights != kNoValue) draft->replace(parts.weights, outputs[1]);

  group->node = parts.name;
  group->kind = "Attention";
  group->mask = parts.mask.kind;
  group->weights_output = parts.weights != kNoValue;
  group->head_dim = number_of(operand_dim(facts, parts.query, parts.query.rank() - 1));
  if (parts.query.rank() == 4) {
    group->heads = number_of(operand_dim(facts, parts.query, 1));
    group->kv_heads = number_of(operand_dim(facts, parts.key, 1));
  } else if (const auto joined = operand_dim(facts, parts.query, 0); joined && !joined->is_number()) {
    group->heads = group->kv_heads = joined->factor;  // of batch · heads, where the batch has a name
  }
  return draft->producer(outputs[0]);
}

}  // namespace headway::fusion
