// Three sides above, one below, and the node.
#include "ops/fusion/attention/frame.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/fusion/attention/head_trace.h"
#include "ops/fusion/attention/projection.h"

namespace headway::fusion {
namespace {

const std::vector<std::int64_t> kAsTheyAre = {0, 1, 2, 3};
// Where a core writes its heads when an output projection can read them: [B, S, H, D], or [S, B, H, D].
const std::vector<std::int64_t> kBatchFirst = {0, 2, 1, 3};
const std::vector<std::int64_t> kSequenceFirst = {1, 2, 0, 3};

std::optional<TracedHeads> read_side(const Draft& draft, Facts* facts, const Node& core, std::size_t input,
                                     const char* axes) {
  return trace_heads(draft, facts, core.inputs[input], core.attributes.integers(axes, kAsTheyAre));
}

/// Width of the tensor that a projection reads.
std::int64_t input_width(const Draft& draft, const Projection& p) {
  return draft.constant(p.weight)->dims()[p.transposed ? 1 : 0];
}

bool swaps_tokens(const Node* node) {
  return node != nullptr && node->attributes.integers("perm") == std::vector<std::int64_t>{1, 0, 2};
}

/// [S, B, E] as [B, S, E]: what it was made of, or else a Transpose.
ValueId batch_first(ValueId tokens, const std::string& name, int before, Draft* draft) {
  const Node* node = draft->maker(tokens, "Transpose");
  if (swaps_tokens(node)) return node->inputs[0];
  const Attributes swap{{"perm", std::vector<std::int64_t>{1, 0, 2}}};
  return draft->add_node({"Transpose", name, {tokens}, swap, 1, before}).front();
}

/// Lets those who read `tokens`, [S, B, E], read `out`, [B, S, E].
void replace_sequence_first(ValueId tokens, ValueId out, const std::string& name, int before, Draft* draft) {
  if (draft->has_one_consumer(tokens)) {
    const Node& reader = draft->node(draft->consumers(tokens)[0]);
    if (reader.op == "Transpose" && reader.guards.empty() && swaps_tokens(&reader)) {
      draft->replace(reader.outputs[0], out);
      return;
    }
  }
  const Attributes swap{{"perm", std::vector<std::int64_t>{1, 0, 2}}};
  draft->replace(tokens, draft->add_node({"Transpose", name, {out}, swap, 1, before}).front());
}

}  // namespace

bool fuse_frame(int attention, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& core = draft->node(attention);
  if (core.op != "Attention") return false;
  const std::vector<std::int64_t> out_axes = core.attributes.integers("out_axes");
  if (out_axes != kBatchFirst && out_axes != kSequenceFirst) return false;
  const auto query = read_side(*draft, facts, core, 0, "query_axes");
  const auto key = read_side(*draft, facts, core, 1, "key_axes");
  const auto value = read_side(*draft, facts, core, 2, "value_axes");
  if (!query || !key || !value || value->projection.scale != 1) return false;
  if (key->width != query->width || key->heads != value->heads || key->heads < 1) return false;
  if (query->heads % key->heads != 0) return false;

  const auto out = projection_below(*draft, facts, core.outputs[0]);
  const std::int64_t embed = input_width(*draft, query->projection);
  if (!out || out->projection.columns != embed) return false;
  if (input_width(*draft, out->projection) != query->heads * value->width) return false;

  const int before = draft->place_of(attention);
  const auto input_of = [&](const TracedHeads& side) {
    return side.batch_first ? side.projection.input : batch_first(side.projection.input, core.name, before, draft);
  };
  const ValueId x = input_of(*query), k = input_of(*key), v = input_of(*value);
  const bool self = k == x && v == x;
  if (!self && (key->only_batch || value->only_batch)) return false;
  Attributes attributes;
  const auto set_only = [&](const char* attribute, std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
    if (a || b) attributes.set(attribute, a ? *a : *b);
    return !a || !b || a == b;
  };
  if (!set_only("only_key_len", key->only_length, value->only_length)) return false;
  set_only("only_query_len", query->only_length, {});
  if (!set_only("only_batch", query->only_batch, key->only_batch ? key->only_batch : value->only_batch)) return false;
  for (const auto& [name, attribute] : core.attributes.values()) {
    if (name.find("_axes") == std::string::npos) attributes.set(name, attribute);
  }
  const double scale = static_cast<double>(core.attributes.real("scale", 1)) * query->projection.scale;
  attributes.set("scale", static_cast<float>(scale * key->projection.scale));
  attributes.set("num_heads", query->heads);
  attributes.set("num_kv_heads", key->heads);
  attributes.set("head_dim", query->width);
  attributes.set("value_head_dim", value->width);
  attributes.set("weights", std::string("in_out"));
  std::vector<ValueId> inputs{x, self ? kNoValue : k, self ? kNoValue : v};
  for (const Projection* p : {&query->projection, &key->projection, &value->projection, &out->projection}) {
    inputs.push_back(weight_constant(*p, draft));
  }
  for (const Projection* p : {&query->projection, &key->projection, &value->projection, &out->projection}) {
    inputs.push_back(bias_constant(*p, draft));
  }
  if (core.inputs.size() > 3) inputs.insert(inputs.end(), {kNoValue, kNoValue, core.inputs[3]});
  const std::vector<ValueId> core_outputs = core.outputs;
  const std::vector<ValueId> outputs =
      draft->add_node({"MultiHeadAttention", core.name, std::move(inputs), std::move(attributes),
                       static_cast<int>(core_outputs.size()), before});
  if (out_axes == kBatchFirst) {
    draft->replace(out->result, outputs[0]);
  } else {
    replace_sequence_first(out->result, outputs[0], group->node, before, draft);
  }
  if (outputs.size() > 1) draft->replace(core_outputs[1], outputs[1]);
  group->kind = "MultiHeadAttention";
  group->heads = query->heads;
  group->kv_heads = key->heads;
  group->head_dim = query->width;
  return true;
}

}  // namespace headway::fusion
