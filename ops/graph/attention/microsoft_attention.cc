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

bool is_given(const NodeContext& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i].present; }

void refuse(const NodeContext& node, const char* attribute) {
  const std::int64_t value = node.attributes.integer(attribute, 0);
  if (value != 0) fail(ErrorCode::kUnsupported, kOp, ' ', attribute, " is ", value, ", which is not supported");
}

void read_widths(const NodeContext& node, Layer* layer) {
  const Dims& weights = node.inputs[kWeights].dims;
  require(weights.rank() == 2 && weights[0] == layer->input_width, kOp, " weights has dims ", weights, ", expected [",
          layer->input_width, ", E + E + Ev]");
  const std::vector<std::int64_t> sizes = node.attributes.integers("qkv_hidden_sizes");
  if (sizes.empty()) {
    require(weights[1] % 3 == 0, kOp, " weights has ", weights[1], " columns, expected a multiple of 3");
    layer->width = layer->value_width = weights[1] / 3;
  } else {
    require(sizes.size() == 3, kOp, " qkv_hidden_sizes has ", sizes.size(), " elements, expected 3");
    for (const std::int64_t size : sizes) {
      require(size > 0 && size <= weights[1], kOp, " qkv_hidden_sizes holds ", size, ", expected 1 to ", weights[1]);
    }
    require(sizes[0] == sizes[1], kOp, " qkv_hidden_sizes begins with ", sizes[0], " and ", sizes[1],
            ", expected the same");
    require(sizes[0] + sizes[1] + sizes[2] == weights[1], kOp, " qkv_hidden_sizes is ", sizes[0] + sizes[1] + sizes[2],
            " together, expected ", weights[1], " as weights has columns");
    layer->width = sizes[0];
    layer->value_width = sizes[2];
  }
  const std::int64_t heads = layer->core.core.num_heads;
  for (const std::int64_t width : {layer->width, layer->value_width}) {
    require(width > 0 && width % heads == 0, kOp, " has a width of ", width,
            ", expected a multiple of num_heads = ", heads);
  }
}

Layer read(const NodeContext& node) {
  check_inputs(kOp, node, 2, kInputs);
  require(node.num_outputs <= 2, kOp, " has ", node.num_outputs, " outputs, expected at most 2");
  for (const char* const attribute : {"do_rotary", "past_present_share_buffer"}) refuse(node, attribute);
  Layer layer;
  MicrosoftCore& a = layer.core;
  AttentionSpec& c = a.core;
  a.op = kOp;
  a.type = node.inputs[kInput].type;
  const Dims& input = node.inputs[kInput].dims;
  require(input.rank() == 3, kOp, " input has rank ", input.rank(), ", expected 3");
  check_microsoft_type(a, node, kWeights, "weights");
  layer.input_width = input[2];
  layer.present = node.num_outputs > 1;
  c.batch = input[0];
  c.query_len = c.key_len = input[1];
  c.num_heads = node.attributes.integer("num_heads");
  require(c.num_heads >= 1, kOp, " num_heads is ", c.num_heads, ", expected at least 1");
  read_widths(node, &layer);
  c.head_dim = layer.width / c.num_heads;
  c.value_head_dim = layer.value_width / c.num_heads;
  if (is_given(node, kBias)) {
    check_microsoft_type(a, node, kBias, "bias");
    check_microsoft_dims(kOp, "bias", node.inputs[kBias].dims, {2 * layer.width + layer.value_width});
  }
  a.has_past = is_given(node, kPast);
  require(!(a.has_past || layer.present) || c.head_dim == *c.value_head_dim, kOp, " has a past or a present and heads ",
          c.head_dim, " and ", *c.value_head_dim, " wide, expected the same");
  if (a.has_past) {
    check_microsoft_type(a, node, kPast, "past");
    const Dims& past = node.inputs[kPast].dims;
    require(past.rank() == 5, kOp, " past has rank ", past.rank(), ", expected 5");
    a.past = past[3];
    check_microsoft_dims(kOp, "past", past, {2, c.batch, c.num_heads, a.past, c.head_dim});
    c.key_len += a.past;
  }
  read_microsoft_masks(node, {kMask, kAttentionBias, "mask_index"}, false, &a);
  return layer;
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
PackedMatmul projection(const NodeContext& node, const Layer& layer, const PackedMatmul* same) {
  Tensor wide_weights, wide_bias;
  const ConstTensorView weights = constant(node, kWeights, "weights", &wide_weights);
  const ConstTensorView bias = is_given(node, kBias) ? constant(node, kBias, "bias", &wide_bias) : ConstTensorView();
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
  static const PackedMatmul* same_projection(const NodeContext& node) {
    const auto* sibling = sharing_plan<MicrosoftAttentionPlan>(node, {kWeights, kBias});
    return sibling != nullptr ? &sibling->projection_ : nullptr;
  }

  Layer layer_;
  PackedMatmul projection_;
  MicrosoftCorePlan core_;
  WorkspaceLayout book_;
  WorkspaceSlot input_, rows_;
};

class MicrosoftAttentionOp : public Operator {
 public:
  std::string_view name() const override { return kOp; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    const Layer layer = read(node);
    const AttentionSpec& c = layer.core.core;
    std::vector<TensorInfo> outputs{{layer.core.type, {c.batch, c.query_len, layer.value_width}}};
    if (layer.present) outputs.push_back({layer.core.type, {2, c.batch, c.num_heads, c.key_len, c.head_dim}});
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<MicrosoftAttentionPlan>(node, read(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_microsoft_attention_op() { return std::make_unique<MicrosoftAttentionOp>(); }

}  // namespace headway
