// Three sides above, one below, and the node.
#include "ops/fusion/frame.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/fusion/projection.h"

namespace headway::fusion {
namespace {

const std::vector<std::int64_t> kTokensFirst = {0, 2, 1, 3};

/// One of query, key and value, with the heads that its projection is split into.
struct Side {
  Projection projection;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

std::optional<Side> read_side(const Draft& draft, Facts* facts, ValueId value) {
  const Node* split = draft.maker(value, "Reshape");
  if (split == nullptr) return std::nullopt;
  const auto tokens = facts->of(split->inputs[0]).dims;
  const auto heads = facts->of(value).dims;
  if (!tokens || !heads || tokens->size() != 3 || heads->size() != 4) return std::nullopt;
  if ((*tokens)[0] != (*heads)[0] || (*tokens)[1] != (*heads)[1]) return std::nullopt;
  if (!(*heads)[2].is_number() || !(*heads)[3].is_number()) return std::nullopt;
  const auto projection = read_projection(draft, facts, split->inputs[0]);
  if (!projection || projection->columns != (*heads)[2].factor * (*heads)[3].factor) return std::nullopt;
  return Side{*projection, (*heads)[2].factor, (*heads)[3].factor};
}

/// Width of the tensor that a projection reads.
std::int64_t input_width(const Draft& draft, const Projection& p) {
  return draft.constant(p.weight)->dims()[p.transposed ? 1 : 0];
}

}  // namespace

bool fuse_frame(int attention, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& core = draft->node(attention);
  if (core.op != "Attention") return false;
  for (const char* key : {"query_axes", "key_axes", "value_axes", "out_axes"}) {
    if (core.attributes.integers(key) != kTokensFirst) return false;
  }
  const auto query = read_side(*draft, facts, core.inputs[0]);
  const auto key = read_side(*draft, facts, core.inputs[1]);
  const auto value = read_side(*draft, facts, core.inputs[2]);
  if (!query || !key || !value || value->projection.scale != 1) return false;
  if (key->width != query->width || key->heads != value->heads || key->heads < 1) return false;
  if (query->heads % key->heads != 0) return false;

  const auto out = projection_below(*draft, facts, core.outputs[0]);
  const std::int64_t embed = input_width(*draft, query->projection);
  if (!out || out->projection.columns != embed) return false;
  if (input_width(*draft, out->projection) != query->heads * value->width) return false;

  const ValueId x = query->projection.input;
  const bool self = key->projection.input == x && value->projection.input == x;
  Attributes attributes;
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
  std::vector<ValueId> inputs{x, self ? kNoValue : key->projection.input, self ? kNoValue : value->projection.input};
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
                       static_cast<int>(core_outputs.size()), draft->place_of(attention)});
  draft->replace(out->result, outputs[0]);
  if (outputs.size() > 1) draft->replace(core_outputs[1], outputs[1]);
  group->kind = "MultiHeadAttention";
  group->heads = query->heads;
  group->kv_heads = key->heads;
  group->head_dim = query->width;
  return true;
}

}  // namespace headway::fusion
