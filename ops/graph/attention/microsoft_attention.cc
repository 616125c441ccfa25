// com.microsoft.Attention: one packed projection, then the core; no projection of the output. Inputs in ONNX Runtime's
// order, ? optional; B batch, N heads, S tokens, P keys of the past, T = P + S:
//   input [B, S, Ei], weights [Ei, 2·N·H + N·Hv], bias? [2·N·H + N·Hv] (constants, packed at plan time), mask_index?
//   and attention_bias? as microsoft_core_op.h has them, past? [2, B, N, P, H], past_sequence_length? (not read: it is
//   for shared buffers, which are refused) → output [B, S, N·Hv], present? [2, B, N, T, H]
// Decides where the projected rows lie.
#include <utility>

#include "ops/base/narrow.h"
#include "ops/graph/attention/attributes.h"
#include "ops/graph/attention/microsoft_core.h"
#include "ops/graph/operators.h"
#include "ops/matmul/matmul.h"
#include "ops/multi_head_attention/layer_zones.h"
#include "ops/multi_head_attention/projected_layout.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr const char* kOp = "com.microsoft.Attention";
enum At : std::size_t { kInput, kWeights, kBias, kMask, kPast, kAttentionBias, kPastLength, kInputs };

struct Layer {
  MicrosoftCore core;
  std::int64_t input_width = 0;
  std::int64_t width = 0;        ///< of query, and of key
  std::int64_t value_width = 0;  ///< of value
  bool present = false;
};

/// What the rule knows of a node.
struct Sizes {
  MicrosoftSizes core;
  Dim input_width = 1, width = 1, value_width = 1;
};

void refuse(const InferContext& node, const char* attribute) {
  const std::int64_t value = node.attributes.integer(attribute, 0);
  if (value != 0) fail(ErrorCode::kUnsupported, kOp, ' ', attribute, " is ", value, ", which is not supported");
}

/// Of a width that is a number.
void check_width(const Dim& width, std::int64_t heads) {
  require(!width.is_number() || (width.factor > 0 && width.factor % heads == 0), kOp, " has a width of ", width,
          ", expected a multiple of num_heads = ", heads);
}

void read_widths(const InferContext& node, Sizes* sizes) {
  const DimList& weights = *node.inputs[kWeights].dims;
  require(weights.size() == 2 && may_equal(weights[0], sizes->input_width), kOp, " weights has dims ", weights,
          ", expected [", sizes->input_width, ", E + E + Ev]");
  const Dim& columns = weights[1];
  const std::vector<std::int64_t> given = node.attributes.integers("qkv_hidden_sizes");
  if (given.empty()) {
    require(!columns.is_number() || columns.factor % 3 == 0, kOp, " weights has ", columns,
            " columns, expected a multiple of 3");
    const auto third = divided(columns, Dim(3));
    sizes->width = sizes->value_width = third ? *third : node.unknown_size(2);
  } else {
    require(given.size() == 3, kOp, " qkv_hidden_sizes has ", given.size(), " elements, expected 3");
    const std::int64_t most = columns.is_number() ? columns.factor : INT32_MAX;
    for (const std::int64_t size : given) {
      require(size > 0 && size <= most, kOp, " qkv_hidden_sizes holds ", size, ", expected 1 to ", most);
    }
    require(given[0] == given[1], kOp, " qkv_hidden_sizes begins with ", given[0], " and ", given[1],
            ", expected the same");
    // In unsigned numbers: three of them may not fit a signed one.
    const std::uint64_t sum = 2 * static_cast<std::uint64_t>(given[0]) + static_cast<std::uint64_t>(given[2]);
    require(!columns.is_number() || sum == static_cast<std::uint64_t>(columns.factor), kOp, " qkv_hidden_sizes is ",
            sum, " together, expected ", columns, " as weights has columns");
    sizes->width = given[0];
    sizes->value_width = given[2];
  }
  const std::int64_t heads = sizes->core.num_heads;
  check_width(sizes->width, heads);
  check_width(sizes->value_width, heads);
  const auto width = divided(sizes->width, Dim(heads));
  const auto value_width = divided(sizes->value_width, Dim(heads));
  sizes->core.head_dim = width ? *width : node.unknown_size(3);
  sizes->core.value_head_dim = value_width ? *value_width : node.unknown_size(4);
}

void read_past(const InferContext& node, bool present, MicrosoftSizes* s) {
  const bool has_past = has_input(node, kPast);
  require(!(has_past || present) || may_equal(s->head_dim, s->value_head_dim), kOp,
          " has a past or a present and heads ", s->head_dim, " and ", s->value_head_dim, " wide, expected the same");
  if (!has_past) return;
  if (!node.inputs[kPast].dims) {
    s->past = node.unknown_size(6);
    s->key_len = sum_of(node, s->past, s->key_len);
    return;
  }
  const DimList& past = *node.inputs[kPast].dims;
  require(past.size() == 5, kOp, " past has rank ", past.size(), ", expected 5");
  s->past = past[3];
  check_microsoft_dims(kOp, "past", past, {2, s->batch, s->num_heads, s->past, s->head_dim});
  s->key_len = sum_of(node, s->past, s->key_len);
}

/// Fills in what is known of the sizes.
Layer read(const InferContext& node, Sizes* sizes) {
  check_inputs(kOp, node, 2, kInputs);
  check_outputs(kOp, node, 2);
  for (const char* const attribute : {"do_rotary", "past_present_share_buffer"}) refuse(node, attribute);
  Layer layer;
  MicrosoftCore& a = layer.core;
  a.op = kOp;
  a.type = node.inputs[kInput].type.value_or(DataType::kF32);
  for (const auto& [i, what] : {std::pair(kWeights, "weights"), {kBias, "bias"}, {kPast, "past"}}) {
    if (has_input(node, i)) check_microsoft_type(a, node, i, what);
  }
  layer.present = node.num_outputs > 1;
  a.has_past = has_input(node, kPast);
  MicrosoftSizes& s = sizes->core;
  s.num_heads = node.attributes.integer("num_heads");
  require(s.num_heads >= 1, kOp, " num_heads is ", s.num_heads, ", expected at least 1");
  const auto& input = node.inputs[kInput].dims;
  require(!input || input->size() == 3, kOp, " input has rank ", input ? input->size() : 0, ", expected 3");
  s.batch = input ? (*input)[0] : node.unknown_size(0);
  s.query_len = s.key_len = input ? (*input)[1] : node.unknown_size(1);
  sizes->input_width = input ? (*input)[2] : node.unknown_size(5);
  if (node.inputs[kWeights].dims) {
    read_widths(node, sizes);
  } else {
    sizes->width = sizes->value_width = node.unknown_size(2);
    s.head_dim = s.value_head_dim = node.unknown_size(3);
  }
  if (has_input(node, kBias) && node.inputs[kBias].dims) {
    const Dim both = sizes->width * Dim(2);
    check_microsoft_dims(kOp, "bias", *node.inputs[kBias].dims, {sum_of(node, both, sizes->value_width)});
  }
  read_past(node, layer.present, &s);
  set_microsoft_sizes(s, &a);
  read_microsoft_masks(node, {kMask, kAttentionBias, "mask_index"}, s, false, &a);
  layer.input_width = number_or_one(sizes->input_width);
  layer.width = number_or_one(sizes->width);
  layer.value_width = number_or_one(sizes->value_width);
  return layer;
}

Layer read(const NodeContext& node) {
  Sizes sizes;
  const PlannedInputs planned(node);
  return read(planned.context(), &sizes);
}

/// A constant as f32, in `wide` where it is narrow.
ConstTensorView constant(const NodeContext& node, std::size_t i, const char* what, Tensor* wide) {
  require(i < node.constants.size() && node.constants[i], kOp, ' ', what,
          " is computed at run time, expected a constant");
  const ConstTensorView given = node.constants[i];
  if (given.type == DataType::kF32) return given;
  *wide = Tensor(DataType::kF32, given.dims);
  convert_view(given, wide->view());
  return std::as_const(*wide).view();
}

/// `same` is the projection of another shape with the same weights; null: none.
PlannedMatmul projection(const NodeContext& node, const Layer& layer, const PlannedMatmul* same) {
  Tensor wide_weights, wide_bias;
  const ConstTensorView weights = constant(node, kWeights, "weights", &wide_weights);
  const ConstTensorView bias = has_input(node, kBias) ? constant(node, kBias, "bias", &wide_bias) : ConstTensorView();
  const std::int64_t columns = 2 * layer.width + layer.value_width;
  return {{.rows = layer.core.core.batch * layer.core.core.query_len,
           .columns = columns,
           .depth = layer.input_width,
           .x_stride = layer.input_width,
           .y_stride = padded_row(columns)},
          weights.permuted({1, 0}),
          bias,
          same};
}

MicrosoftCoreWants wants(const NodeContext& node, const Layer& layer) {
  return {.present_key = layer.present,
          .present_value = layer.present,
          .implementation = attention_options_of(node).implementation};
}

class MicrosoftAttentionPlan : public NodePlan {
 public:
  MicrosoftAttentionPlan(const NodeContext& node, const Layer& layer)
      : layer_(layer),
        projection_(projection(node, layer, same_projection(node))),
        core_(layer.core, wants(node, layer)) {
    const AttentionSpec& c = layer_.core.core;
    input_ =
        book(&book_, layer_.core.type != DataType::kF32, DataType::kF32, {c.batch, c.query_len, layer_.input_width});
    rows_ =
        book(&book_, true, DataType::kF32, {c.batch, c.query_len, padded_row(2 * layer_.width + layer_.value_width)});
  }
  std::size_t workspace_bytes(int workers) const override {
    return book_.bytes() + std::max(projection_.workspace_bytes(workers), core_.workspace_bytes(workers));
  }
  std::string explain() const override {
    return "query, key, value: " + projection_.explain() + "\n" + core_.explain();
  }
  InputUse use(std::size_t input) const override {
    return input == kWeights || input == kBias ? InputUse::kNothing : InputUse::kElements;  // packed
  }

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const AttentionSpec& c = layer_.core.core;
    std::byte* const rest = context.workspace + book_.bytes();
    ConstTensorView x = inputs[kInput];
    if (input_.used) {
      convert_view(x, input_.in(context.workspace));
      x = input_.in(context.workspace);
    }
    const TensorView rows = rows_.in(context.workspace);
    projection_.run(x.as<float>(), rows.as<float>(), rest, context.threads, context.profiler, kZoneProjections);

    const auto heads = [&](std::int64_t begin, std::int64_t width) {
      return ConstTensorView(rows).sliced(2, begin, begin + width).split_axis(2, c.num_heads).permuted({0, 2, 1, 3});
    };
    const ConstTensorView past = optional_input(inputs, kPast);
    MicrosoftCoreArgs args;
    args.query = heads(0, layer_.width);
    args.key = heads(layer_.width, layer_.width);
    args.value = heads(2 * layer_.width, layer_.value_width);
    if (past) {
      args.past_key = past.selected(0, 0);
      args.past_value = past.selected(0, 1);
    }
    args.mask = optional_input(inputs, kMask);
    args.attention_bias = optional_input(inputs, kAttentionBias);
    args.out = outputs[0].split_axis(2, c.num_heads).permuted({0, 2, 1, 3});
    if (layer_.present) {
      args.present_key = outputs[1].selected(0, 0);
      args.present_value = outputs[1].selected(0, 1);
    }
    core_.run({context.threads, rest, context.profiler}, args);
  }

 private:
  static const PlannedMatmul* same_projection(const NodeContext& node) {
    const auto* sibling = sharing_plan<MicrosoftAttentionPlan>(node, {kWeights, kBias});
    return sibling != nullptr ? &sibling->projection_ : nullptr;
  }

  Layer layer_;
  PlannedMatmul projection_;
  MicrosoftCorePlan core_;
  WorkspaceLayout book_;
  WorkspaceSlot input_, rows_;
};

class MicrosoftAttentionOp : public Operator {
 public:
  std::string_view name() const override { return kOp; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    Sizes sizes;
    read(node, &sizes);
    const MicrosoftSizes& s = sizes.core;
    const auto& type = node.inputs[kInput].type;
    std::vector<ValueInfo> outputs{{type, DimList{s.batch, s.query_len, sizes.value_width}, {}, true}};
    if (node.num_outputs > 1)
      outputs.push_back({type, DimList{2, s.batch, s.num_heads, s.key_len, s.head_dim}, {}, true});
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<MicrosoftAttentionPlan>(node, read(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_microsoft_attention_op() { return std::make_unique<MicrosoftAttentionOp>(); }

}  // namespace headway
