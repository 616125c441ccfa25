// Dims and attributes of a node to a spec; every check of its inputs.
#include "ops/graph/attention/onnx_attention_spec.h"

#include <cmath>
#include <optional>
#include <string>

#include "ops/attention/spec.h"
#include "ops/base/numeric.h"
#include "ops/graph/attention/attributes.h"
#include "ops/graph/onnx_type.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

using At = OnnxAttentionAt;
constexpr const char* kOp = "onnx.Attention";
const char* const kNames[] = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};

/// An input as [B, H, S, D].
DimList with_heads(const InferContext& node, std::size_t i, const char* attribute) {
  const DimList& dims = *node.inputs[i].dims;
  if (dims.size() == 4) return dims;
  const std::int64_t heads = node.attributes.integer(attribute, 0);
  require(heads > 0, kOp, " attribute ", attribute, " is ", heads, ", expected at least 1 for inputs of rank 3");
  require(!dims[2].is_number() || dims[2].factor % heads == 0, kOp, ' ', kNames[i], " is ", dims[2],
          " wide, expected a multiple of ", attribute, " = ", heads);
  const std::optional<Dim> width = divided(dims[2], Dim(heads));
  return {dims[0], heads, dims[1], width ? *width : node.unknown_size(static_cast<std::int64_t>(i))};
}

void require_dims(const char* what, const DimList& got, const DimList& expected) {
  require(may_equal(got, expected), kOp, ' ', what, " has dims ", got, ", expected ", expected);
}

/// The one that is a number, if any is.
Dim known_of(const Dim& a, const Dim& b) { return a.is_number() ? a : b; }

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

void check_types(const InferContext& node) {
  for (const std::size_t i : {At::kQuery, At::kKey, At::kValue, At::kPastKey, At::kPastValue}) {
    if (!has_input(node, i) || !node.inputs[i].type) continue;
    const DataType type = *node.inputs[i].type;
    require(is_float(type), kOp, ' ', kNames[i], " is ", type_name(type), ", expected f32, f64, f16 or bf16");
    const std::size_t like = i == At::kPastValue || i == At::kValue ? At::kValue : At::kQuery;
    const DataType expected = node.inputs[like].type.value_or(type);
    require(type == expected, kOp, ' ', kNames[i], " is ", type_name(type), ", expected ", type_name(expected), " as ",
            kNames[like]);
  }
}

void read_types(const InferContext& node, OnnxAttention* a) {
  a->type = node.inputs[At::kQuery].type.value_or(DataType::kF32);
  a->value_type = node.inputs[At::kValue].type.value_or(a->type);
  a->softmax_type = softmax_type(node.attributes.integer("softmax_precision", 0), a->type);
  a->arithmetic = arithmetic_of(*a, node.attributes.integer("per_op_rounding", 0) != 0);
  const bool all_bf16 = a->type == DataType::kBF16 && a->value_type == DataType::kBF16;
  if (all_bf16 && a->arithmetic == OnnxArithmetic::kNative) a->core.type = DataType::kBF16;
}

/// nullopt where a rank is not known.
std::optional<OnnxAttentionSizes> sizes_of(const InferContext& node) {
  require(has_input(node, At::kPastKey) == has_input(node, At::kPastValue), kOp,
          " has one of past_key and past_value, expected both");
  bool ranks = true;
  for (const std::size_t i : {At::kQuery, At::kKey, At::kValue}) {
    const int rank = node.inputs[i].rank();
    ranks = ranks && rank >= 0;
    require(rank < 0 || rank == 3 || rank == 4, kOp, ' ', kNames[i], " has rank ", rank, ", expected 3 or 4");
  }
  const bool has_past = has_input(node, At::kPastKey);
  for (const std::size_t i : {At::kPastKey, At::kPastValue}) {
    if (!has_past) break;
    const int rank = node.inputs[i].rank();
    ranks = ranks && rank >= 0;
    require(rank < 0 || rank == 4, kOp, ' ', kNames[i], " has rank ", rank, ", expected 4");
  }
  if (!ranks) return std::nullopt;
  const DimList q = with_heads(node, At::kQuery, "q_num_heads");
  const DimList k = with_heads(node, At::kKey, "kv_num_heads");
  const DimList v = with_heads(node, At::kValue, "kv_num_heads");
  OnnxAttentionSizes s;
  s.past = 0;
  if (has_past) {
    s.past = (*node.inputs[At::kPastKey].dims)[2];
    require_dims("past_key", *node.inputs[At::kPastKey].dims, {q[0], k[1], s.past, q[3]});
    require_dims("past_value", *node.inputs[At::kPastValue].dims, {q[0], k[1], s.past, v[3]});
  }
  require_dims("K", k, {q[0], k[1], k[2], q[3]});
  require_dims("V", v, {q[0], k[1], k[2], v[3]});
  s.batch = known_of(q[0], known_of(k[0], v[0]));
  s.num_heads = q[1];
  s.num_kv_heads = known_of(k[1], v[1]);
  s.query_len = q[2];
  s.head_dim = known_of(q[3], k[3]);
  s.key_len = sum_of(node, s.past, known_of(k[2], v[2]));
  s.value_head_dim = v[3];
  const bool known = s.num_heads.is_number() && s.num_kv_heads.is_number();
  require(!known || s.num_heads == s.num_kv_heads ||
              (s.num_kv_heads.factor > 0 && s.num_heads.factor % s.num_kv_heads.factor == 0),
          kOp, " Q has ", s.num_heads, " heads, expected a multiple of the ", s.num_kv_heads, " of K and V");
  return s;
}

void set_sizes(const OnnxAttentionSizes& s, OnnxAttention* a) {
  AttentionSpec& core = a->core;
  const bool heads = s.num_heads.is_number() && s.num_kv_heads.is_number();
  core.batch = number_or_one(s.batch);
  core.num_heads = heads ? s.num_heads.factor : 1;
  core.num_kv_heads = heads ? s.num_kv_heads.factor : 1;
  core.query_len = number_or_one(s.query_len);
  core.key_len = number_or_one(s.key_len);
  core.head_dim = number_or_one(s.head_dim);
  core.value_head_dim = number_or_one(s.value_head_dim);
  a->past = s.past.is_number() ? s.past.factor : 0;
}

/// A mask of one column broadcasts, as in the function body of the operator; from opset 24 on one that is too short is
/// filled up with hidden keys.
void read_mask(const InferContext& node, OnnxAttention* a) {
  if (!has_input(node, At::kMask)) return;
  const DataType type = node.inputs[At::kMask].type.value_or(DataType::kBool);
  require(type == DataType::kBool || is_float(type), kOp, " attn_mask is ", type_name(type), " with Q in ",
          type_name(a->type), ", expected bool or a float type");
  a->core.mask = type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

void check_lengths(const InferContext& node, const Dim& batch) {
  if (!has_input(node, At::kLengths)) return;
  const ValueInfo& lengths = node.inputs[At::kLengths];
  if (lengths.dims) require_dims("nonpad_kv_seqlen", *lengths.dims, {batch});
  const DataType type = lengths.type.value_or(DataType::kI64);
  require(type == DataType::kI64 || type == DataType::kI32, kOp, " nonpad_kv_seqlen is ", type_name(type),
          ", expected i64");
}

/// The diagonal lies at the past, else at length − Sq, else at 0.
void read_positions(const InferContext& node, OnnxAttention* a) {
  AttentionSpec& core = a->core;
  const bool causal = node.attributes.integer("is_causal", 0) != 0;
  core.key_lengths = has_input(node, At::kLengths);
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

OnnxAttention read(const InferContext& node, const OnnxAttentionSizes& sizes) {
  OnnxAttention a;
  a.outputs = static_cast<std::size_t>(node.num_outputs);
  read_types(node, &a);
  set_sizes(sizes, &a);
  a.packed_heads = node.inputs[At::kQuery].rank() == 3;
  a.has_past = has_input(node, At::kPastKey);
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

}  // namespace

OnnxAttention read_onnx_attention(const NodeContext& node) {
  const PlannedInputs planned(node);
  return read(planned.context(), sizes_of(planned.context()).value());
}

std::vector<ValueInfo> infer_onnx_attention(const InferContext& node) {
  check_inputs(kOp, node, 3, 7);
  check_outputs(kOp, node, 4);
  check_types(node);
  const std::optional<OnnxAttentionSizes> sizes = sizes_of(node);
  complete_spec(read(node, sizes.value_or(OnnxAttentionSizes{1, 1, 1, 1, 0, 1, 1, 1})).core);
  const auto& q = node.inputs[At::kQuery];
  const auto& v = node.inputs[At::kValue];
  std::vector<ValueInfo> outputs{{.type = q.type, .dims = {}, .elements = {}},
                                 {.type = q.type, .dims = {}, .elements = {}},
                                 {.type = v.type, .dims = {}, .elements = {}},
                                 {.type = q.type, .dims = {}, .elements = {}}};
  if (sizes) {
    const OnnxAttentionSizes& s = *sizes;
    const DimList full{s.batch, s.num_heads, s.query_len, s.key_len};
    if (has_input(node, At::kMask)) check_mask_dims(std::string(kOp) + " attn_mask", node.inputs[At::kMask], full);
    check_lengths(node, s.batch);
    outputs[At::kOut].dims = q.rank() == 3 ? DimList{s.batch, s.query_len, s.num_heads * s.value_head_dim}
                                           : DimList{s.batch, s.num_heads, s.query_len, s.value_head_dim};
    outputs[At::kPresentKey].dims = DimList{s.batch, s.num_kv_heads, s.key_len, s.head_dim};
    outputs[At::kPresentValue].dims = DimList{s.batch, s.num_kv_heads, s.key_len, s.value_head_dim};
    outputs[At::kScores].dims = full;
  }
  outputs.resize(static_cast<std::size_t>(node.num_outputs));
  return outputs;
}

}  // namespace headway
