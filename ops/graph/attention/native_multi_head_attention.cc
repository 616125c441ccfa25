// The MultiHeadAttention operator; see register_ops.h for attributes. Inputs, in order (? optional):
//   query, key?, value?, w_q, w_k, w_v, w_o, b_q?, b_k?, b_v?, b_o?, bias_k?, bias_v?, mask?, key_mask?, key_lengths?,
//   offsets?
#include "headway/multi_head_attention.h"
#include "ops/attention/known_mask.h"
#include "ops/graph/attention/attributes.h"
#include "ops/graph/operators.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

enum At : std::size_t { kQuery, kKey, kValue, kWq, kWk, kWv, kWo, kBq, kBk, kBv, kBo, kBiasK, kBiasV, kMask };
constexpr MaskInputs kMasksAt{.mask = kMask, .key_mask = kMask + 1, .key_lengths = kMask + 2, .offsets = kMask + 3};
constexpr std::size_t kMaxInputs = kMask + 4;
const char* const kNames[] = {"query", "key", "value", "w_q", "w_k",    "w_v",   "w_o",
                              "b_q",   "b_k", "b_v",   "b_o", "bias_k", "bias_v"};

/// An input that is packed at plan time; absent when it is optional and was left out.
template <class Context>
ConstTensorView constant(const Context& node, std::size_t i, bool optional) {
  if (optional && !has_input(node, i)) return {};
  require(has_input(node, i), "MultiHeadAttention ", kNames[i], " is missing");
  require(i < node.constants.size() && node.constants[i], "MultiHeadAttention ", kNames[i],
          " is computed at run time, expected a constant");
  return node.constants[i];
}

template <class Context>
MultiHeadAttentionWeights weights_of(const Context& node) {
  MultiHeadAttentionWeights w;
  w.query = constant(node, kWq, false);
  w.key = constant(node, kWk, false);
  w.value = constant(node, kWv, false);
  w.output = constant(node, kWo, false);
  w.query_bias = constant(node, kBq, true);
  w.key_bias = constant(node, kBk, true);
  w.value_bias = constant(node, kBv, true);
  w.output_bias = constant(node, kBo, true);
  w.bias_k = constant(node, kBiasK, true);
  w.bias_v = constant(node, kBiasV, true);
  if (node.attributes.text("weights", "out_in") == "in_out") {
    for (ConstTensorView* view : {&w.query, &w.key, &w.value, &w.output}) {
      require(view->rank() == 2, "MultiHeadAttention weight has rank ", view->rank(), ", expected 2");
      *view = view->permuted({1, 0});
    }
  }
  return w;
}

/// [B, S, E] of an input, unknown sizes where its rank is not known.
DimList input_dims(const InferContext& node, std::size_t i) {
  check_f32_or_bf16("MultiHeadAttention", node, i);
  const auto& dims = node.inputs[i].dims;
  if (!dims) return {node.unknown_size(0), node.unknown_size(1), node.unknown_size(2)};
  require(dims->size() == 3, "MultiHeadAttention ", kNames[i], " has rank ", dims->size(), ", expected 3");
  return *dims;
}

/// A size that the node fixes, as a file may that runs for no other.
void check_only(const InferContext& node, const char* attribute, const char* what, const Dim& given) {
  if (!node.attributes.has(attribute)) return;
  const std::int64_t only = node.attributes.integer(attribute);
  require(may_equal(given, Dim(only)), "MultiHeadAttention ", what, " is ", given, ", expected ", attribute, " = ",
          only);
}

/// Sizes that are not known are 1 and as in query.
MultiHeadAttentionSpec spec_of(const InferContext& node) {
  check_inputs("MultiHeadAttention", node, 1, kMaxInputs);
  const Attributes& a = node.attributes;
  const DimList q = input_dims(node, kQuery);
  MultiHeadAttentionSpec spec;
  spec.type = node.inputs[kQuery].type.value_or(DataType::kF32);
  spec.batch = number_or_one(q[0]);
  spec.query_len = number_or_one(q[1]);
  spec.embed_dim = number_or_one(q[2]);
  require(has_input(node, kKey) == has_input(node, kValue),
          "MultiHeadAttention has one of key and value, expected both or neither");
  spec.self_attention = !has_input(node, kKey) || a.integer("self_attention", 0) != 0;
  if (has_input(node, kKey)) {
    const DimList k = input_dims(node, kKey);
    const DimList v = input_dims(node, kValue);
    const bool stands = a.integer("broadcast", 1) != 0;  // one batch entry for all
    for (const DimList* input : {&k, &v}) {
      require((stands && (*input)[0].is(1)) || may_equal((*input)[0], q[0]), "MultiHeadAttention ",
              kNames[input == &k ? kKey : kValue], " has ", (*input)[0], " batch entries, expected ", q[0], " or 1");
    }
    require(may_equal(k[1], v[1]), "MultiHeadAttention value has ", v[1], " tokens, expected ", k[1], " as key");
    const bool known = k[1].is_number() && q[1].is_number();
    spec.key_len = known ? k[1].factor : spec.self_attention ? spec.query_len : number_or_one(k[1]);
    if (k[2].is_number()) spec.kdim = k[2].factor;
    if (v[2].is_number()) spec.vdim = v[2].factor;
  }
  check_only(node, "only_batch", "batch", q[0]);
  check_only(node, "only_query_len", "query_len", q[1]);
  check_only(node, "only_key_len", "key_len", has_input(node, kKey) ? input_dims(node, kKey)[1] : q[1]);
  spec.num_heads = a.integer("num_heads");
  if (a.has("num_kv_heads")) spec.num_kv_heads = a.integer("num_kv_heads");
  if (a.has("head_dim")) spec.head_dim = a.integer("head_dim");
  if (a.has("value_head_dim")) spec.value_head_dim = a.integer("value_head_dim");
  spec.add_zero_attention = a.integer("add_zero_attention", 0) != 0;
  static_cast<AttentionRules&>(spec) = attention_rules_of(node, kMasksAt);
  return spec;
}

/// [B, H, Sq, Skv], appended keys included.
DimList full_dims(const InferContext& node, const MultiHeadAttentionSpec& completed) {
  const DimList q = input_dims(node, kQuery);
  const bool apart = has_input(node, kKey) && !completed.self_attention;
  const Dim keys = sum_of(node, apart ? input_dims(node, kKey)[1] : q[1],
                          core_spec(completed, has_input(node, kBiasK)).always_visible_keys);
  return {q[0], completed.num_heads, q[1], keys};
}

/// A mask is of all keys or of those that the tokens give.
void check_mask_input(const InferContext& node, const MultiHeadAttentionSpec& completed) {
  if (!has_input(node, kMasksAt.mask) || !node.inputs[kMasksAt.mask].dims) return;
  const ValueInfo& mask = node.inputs[kMasksAt.mask];
  DimList full = full_dims(node, completed);
  const bool apart = has_input(node, kKey) && !completed.self_attention;
  const Dim tokens = input_dims(node, apart ? kKey : kQuery)[1];
  if (!mask.dims->empty() && mask.dims->back() == tokens) full[3] = tokens;
  check_mask_dims("mask", mask, full, takes_short_mask(node));
}

MultiHeadAttentionSpec with_known_mask(const NodeContext& node) {
  MultiHeadAttentionSpec spec = spec_of(PlannedInputs(node).context());
  const bool appends = spec.add_zero_attention || has_input(node, kBiasK);
  if (appends || node.constants.size() <= kMask || !node.constants[kMask]) return spec;
  AttentionSpec sized{spec};
  sized.query_len = spec.query_len;
  sized.key_len = spec.self_attention ? spec.query_len : *spec.key_len;
  use_known_mask(node.constants[kMask], &sized);
  spec.mask = sized.mask;
  spec.causal = sized.causal;
  return spec;
}

class MultiHeadAttentionPlan : public NodePlan {
 public:
  explicit MultiHeadAttentionPlan(const NodeContext& node)
      : layer_(with_known_mask(node), weights_of(node), attention_options_of(node), same_weights(node)) {}
  std::size_t workspace_bytes(int workers) const override { return layer_.workspace_bytes(workers); }
  std::string explain() const override { return layer_.explain(); }
  InputUse use(std::size_t input) const override {
    return input >= kWq && input <= kWo ? InputUse::kNothing : InputUse::kElements;  // packed
  }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    MultiHeadAttentionArgs args;
    args.query = inputs[kQuery];
    args.key = for_all_batches(optional_input(inputs, kKey));
    args.value = for_all_batches(optional_input(inputs, kValue));
    if (layer_.spec().mask != MaskKind::kNone) args.mask = inputs[kMasksAt.mask];
    args.key_mask = optional_input(inputs, kMasksAt.key_mask);
    args.key_lengths = optional_input(inputs, kMasksAt.key_lengths);
    args.offsets = optional_input(inputs, kMasksAt.offsets);
    args.out = outputs[0];
    if (layer_.spec().scores_output != ScoresOutput::kNone) args.scores = outputs[1];
    layer_.run(args, context.workspace, context.threads, context.profiler);
  }

 private:
  /// One batch entry of keys or values may stand for all, as in the product of matrices that the node may come from.
  ConstTensorView for_all_batches(const ConstTensorView& view) const {
    if (!view || view.dims[0] != 1 || layer_.spec().batch == 1) return view;
    return view.broadcast_to({layer_.spec().batch, view.dims[1], view.dims[2]});
  }

  /// The layer of another shape, where no weight depends on shapes.
  static const MultiHeadAttention* same_weights(const NodeContext& node) {
    const auto* sibling =
        sharing_plan<MultiHeadAttentionPlan>(node, {kWq, kWk, kWv, kWo, kBq, kBk, kBv, kBo, kBiasK, kBiasV});
    return sibling != nullptr ? &sibling->layer_ : nullptr;
  }

  MultiHeadAttention layer_;
};

class MultiHeadAttentionOp : public Operator {
 public:
  std::string_view name() const override { return "MultiHeadAttention"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    check_outputs("MultiHeadAttention", node, 2);
    const MultiHeadAttentionSpec given = spec_of(node);
    Inferred outputs{like(node.inputs[kQuery])};
    const bool apart = has_input(node, kKey);
    const bool widths = input_dims(node, kQuery)[2].is_number() &&
                        (!apart || (input_dims(node, kKey)[2].is_number() && input_dims(node, kValue)[2].is_number()));
    if (!widths) {
      if (node.num_outputs > 1) outputs.push_back({.type = DataType::kF32, .dims = {}, .elements = {}});
      return outputs;
    }
    const MultiHeadAttentionSpec spec = complete_spec(given);
    check_weights(spec, weights_of(node));
    check_mask_input(node, spec);
    if (node.num_outputs > 1) {
      const DimList scores = scores_dims(spec.scores_output, full_dims(node, spec));
      outputs.push_back({.type = DataType::kF32, .dims = scores, .elements = {}});
    }
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<MultiHeadAttentionPlan>(node);
  }
};

}  // namespace

std::unique_ptr<Operator> make_multi_head_attention_op() { return std::make_unique<MultiHeadAttentionOp>(); }

}  // namespace headway
