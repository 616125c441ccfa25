// Dims and attributes of a node to a spec; every check of its inputs.
#include "ops/graph/attention/onnx_attention_spec.h"

#include <cmath>

#include "ops/base/numeric.h"
#include "ops/graph/onnx_type.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

using At = OnnxAttentionAt;
constexpr const char* kOp = "onnx.Attention";
const char* const kNames[] = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};

bool is_given(const NodeContext& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i].present; }

/// An input as [B, H, S, D].
Dims with_heads(const NodeContext& node, std::size_t i, const char* attribute) {
  const Dims& dims = node.inputs[i].dims;
  require(dims.rank() == 3 || dims.rank() == 4, kOp, ' ', kNames[i], " has rank ", dims.rank(), ", expected 3 or 4");
  if (dims.rank() == 4) return dims;
  const std::int64_t heads = node.attributes.integer(attribute, 0);
  require(heads > 0, kOp, " attribute ", attribute, " is ", heads, ", expected at least 1 for inputs of rank 3");
  require(dims[2] % heads == 0, kOp, ' ', kNames[i], " is ", dims[2], " wide, expected a multiple of ", attribute,
          " = ", heads);
  return {dims[0], heads, dims[1], dims[2] / heads};
}

void require_dims(const char* what, const Dims& got, const Dims& expected) {
  require(got == expected, kOp, ' ', what, " has dims ", got, ", expected ", expected);
}

DataType softmax_type(std::int64_t precision, DataType otherwise) {
  if (precision == 0) return otherwise;
  const std::optional<DataType> type = onnx_type(precision);
  require(type && is_float(*type), kOp, " softmax_precision is ", precision, ", expected 1, 10, 11 or 16");
  return *type;
}

ScoresOutput scores_mode(std::int64_t mode) {
  constexpr ScoresOutput kModes[] = {ScoresOutput::kScaled, ScoresOutput::kSoftcapped, ScoresOutput::kBiased,
                                     ScoresOutput::kProbabilities};
  require(mode >= 0 && mode < 4, kOp, " qk_matmul_output_mode is ", mode, ", expected 0 to 3");
  return kModes[mode];
}

OnnxArithmetic arithmetic_of(const OnnxAttention& a, bool per_op_rounding) {
  const bool any_double = a.type == DataType::kF64 || a.value_type == DataType::kF64;
  if (any_double) {
    require(a.type == a.value_type, kOp, " V is ", type_name(a.value_type), ", expected ", type_name(a.type), " as Q");
    return OnnxArithmetic::kDouble;
  }
  const bool wide = a.softmax_type == DataType::kF32 || a.softmax_type == DataType::kF64;
  const bool f32 = a.type == DataType::kF32 && a.value_type == DataType::kF32;
  return per_op_rounding && !(f32 && wide) ? OnnxArithmetic::kPerOpRounding : OnnxArithmetic::kNative;
}

void read_types(const NodeContext& node, OnnxAttention* a) {
  for (const std::size_t i : {At::kQuery, At::kKey, At::kValue, At::kPastKey, At::kPastValue}) {
    if (!is_given(node, i)) continue;
    const DataType type = node.inputs[i].type;
    require(is_float(type), kOp, ' ', kNames[i], " is ", type_name(type), ", expected f32, f64, f16 or bf16");
    const std::size_t like = i == At::kPastValue || i == At::kValue ? At::kValue : At::kQuery;
    require(type == node.inputs[like].type, kOp, ' ', kNames[i], " is ", type_name(type), ", expected ",
            type_name(node.inputs[like].type), " as ", kNames[like]);
  }
  a->type = node.inputs[At::kQuery].type;
  a->value_type = node.inputs[At::kValue].type;
  a->softmax_type = softmax_type(node.attributes.integer("softmax_precision", 0), a->type);
  a->arithmetic = arithmetic_of(*a, node.attributes.integer("per_op_rounding", 0) != 0);
  const bool all_bf16 = a->type == DataType::kBF16 && a->value_type == DataType::kBF16;
  if (all_bf16 && a->arithmetic == OnnxArithmetic::kNative) a->core.type = DataType::kBF16;
}

void read_sizes(const NodeContext& node, OnnxAttention* a) {
  const Dims q = with_heads(node, At::kQuery, "q_num_heads");
  const Dims k = with_heads(node, At::kKey, "kv_num_heads");
  const Dims v = with_heads(node, At::kValue, "kv_num_heads");
  a->packed_heads = node.inputs[At::kQuery].dims.rank() == 3;
  a->has_past = is_given(node, At::kPastKey);
  require(a->has_past == is_given(node, At::kPastValue), kOp, " has one of past_key and past_value, expected both");
  if (a->has_past) {
    const Dims& past = node.inputs[At::kPastKey].dims;
    require(past.rank() == 4, kOp, " past_key has rank ", past.rank(), ", expected 4");
    a->past = past[2];
    require_dims("past_key", past, {q[0], k[1], a->past, q[3]});
    require_dims("past_value", node.inputs[At::kPastValue].dims, {q[0], k[1], a->past, v[3]});
  }
  require_dims("K", k, {q[0], k[1], k[2], q[3]});
  require_dims("V", v, {q[0], k[1], k[2], v[3]});
  AttentionSpec& core = a->core;
  core.batch = q[0];
  core.num_heads = q[1];
  core.query_len = q[2];
  core.head_dim = q[3];
  core.num_kv_heads = k[1];
  core.key_len = a->past + k[2];
  core.value_head_dim = v[3];
}

void read_mask(const NodeContext& node, OnnxAttention* a) {
  if (!is_given(node, At::kMask)) return;
  const TensorInfo& mask = node.inputs[At::kMask];
  require(mask.type == DataType::kBool || is_float(mask.type), kOp, " attn_mask is ", type_name(mask.type),
          " with Q in ", type_name(a->type), ", expected bool or a float type");
  require(mask.dims.rank() >= 1 && mask.dims.rank() <= 4, kOp, " attn_mask has rank ", mask.dims.rank(),
          ", expected 1 to 4");
  a->core.mask = mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
  // Up to opset 23 one column broadcasts; from 24 on a mask that is too short is filled up with hidden keys.
  a->pads_mask = mask.dims.back() == 1 && a->core.key_len > 1 && node.attributes.integer("opset", 23) >= 24;
  if (a->pads_mask) a->core.mask = MaskKind::kAdditive;
}

/// The diagonal lies at the past, else at length − Sq, else at 0.
void read_positions(const NodeContext& node, OnnxAttention* a) {
  AttentionSpec& core = a->core;
  const bool causal = node.attributes.integer("is_causal", 0) != 0;
  core.key_lengths = is_given(node, At::kLengths);
  if (core.key_lengths) {
    require_dims("nonpad_kv_seqlen", node.inputs[At::kLengths].dims, {core.batch});
    require(node.inputs[At::kLengths].type == DataType::kI64 || node.inputs[At::kLengths].type == DataType::kI32, kOp,
            " nonpad_kv_seqlen is ", type_name(node.inputs[At::kLengths].type), ", expected i64");
  }
  core.window.left = node.attributes.integer("left_window_size", -1);
  core.window.right = node.attributes.integer("right_window_size", -1);
  const bool by_length = core.key_lengths && !a->has_past;
  if (!by_length && a->past == 0) {
    core.causal = causal ? Causal::kTopLeft : Causal::kNone;
  } else if (causal && !by_length && a->past == core.key_len - core.query_len) {
    core.causal = Causal::kBottomRight;
  } else {
    core.causal = causal ? Causal::kOffset : Causal::kNone;
    a->gives_offsets = causal || core.window.left >= 0 || core.window.right >= 0;
  }
}

}  // namespace

OnnxAttention read_onnx_attention(const NodeContext& node) {
  check_inputs(kOp, node, 3, 7);
  OnnxAttention a;
  a.outputs = static_cast<std::size_t>(node.num_outputs);
  require(a.outputs <= 4, kOp, " has ", a.outputs, " outputs, expected at most 4");
  read_types(node, &a);
  read_sizes(node, &a);
  if (node.attributes.has("scale")) {
    a.core.scale = node.attributes.real("scale", 0);
  } else if (a.core.head_dim > 0) {
    a.core.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.core.head_dim)));
  } else {
    a.core.scale = 1.0f;
  }
  a.core.softcap = node.attributes.real("softcap", 0);
  a.core.empty_row = EmptyRow::kZero;
  a.core.mask_polarity = MaskPolarity::kTrueAttends;
  read_mask(node, &a);
  read_positions(node, &a);
  if (a.outputs > At::kScores) {
    a.core.scores_output = scores_mode(node.attributes.integer("qk_matmul_output_mode", 0));
  }
  return a;
}

std::vector<TensorInfo> onnx_attention_outputs(const OnnxAttention& a) {
  const AttentionSpec& c = a.core;
  const Dims out = a.packed_heads ? Dims{c.batch, c.query_len, c.num_heads * *c.value_head_dim}
                                  : Dims{c.batch, c.num_heads, c.query_len, *c.value_head_dim};
  std::vector<TensorInfo> outputs{{a.type, out},
                                  {a.type, {c.batch, *c.num_kv_heads, c.key_len, c.head_dim}},
                                  {a.value_type, {c.batch, *c.num_kv_heads, c.key_len, *c.value_head_dim}},
                                  {a.type, {c.batch, c.num_heads, c.query_len, c.key_len}}};
  outputs.resize(a.outputs);
  return outputs;
}

}  // namespace headway
