// Attributes, types and dims of a node, each checked as far as it is known.
#include "ops/graph/attention/group_query_rule.h"

#include <algorithm>
#include <utility>

#include "ops/base/numeric.h"
#include "ops/graph/infer.h"
#include "ops/graph/table_op.h"

namespace headway::group_query {
namespace {

const char* const kNames[] = {"query", "key",       "value",     "past_key",     "past_value",     "seqlens_k",
                              "total", "cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink"};
void check_dims(const InferContext& node, std::size_t i, const DimList& expected) {
  if (!has_input(node, i) || !node.inputs[i].dims) return;
  const DimList& got = *node.inputs[i].dims;
  require(may_equal(got, expected), kOp, ' ', kNames[i], " has dims ", got, ", expected ", expected);
}

void check_attributes(const InferContext& node, std::int64_t heads, std::int64_t kv_heads) {
  require(heads >= 1, kOp, " num_heads is ", heads, ", expected at least 1");
  require(kv_heads >= 1 && heads % kv_heads == 0, kOp, " kv_num_heads is ", kv_heads,
          ", expected a divisor of num_heads = ", heads);
  for (const char* const name : {"k_quant_type", "v_quant_type"}) {
    const std::string type = node.attributes.text(name, "NONE");
    if (type != "NONE") fail(ErrorCode::kUnsupported, kOp, ' ', name, " is ", type, ", which is not supported");
  }
  const std::int64_t shown = node.attributes.integer("qk_output", 0);
  if (shown != 0) fail(ErrorCode::kUnsupported, kOp, " qk_output is ", shown, ", expected 0");
  require(node.attributes.real("softcap", 0) >= 0, kOp, " softcap is ", node.attributes.real("softcap", 0),
          ", expected 0 or more");
}

void check_types(const InferContext& node) {
  const DataType type = node.inputs[kQuery].type.value_or(DataType::kF32);
  require(is_float(type) && type != DataType::kF64, kOp, " query is ", type_name(type), ", expected f32, f16 or bf16");
  for (const std::size_t i : {kKey, kValue, kPastKey, kPastValue, kCos, kSin, kBias, kSink}) {
    if (!has_input(node, i)) continue;
    const DataType given = node.inputs[i].type.value_or(type);
    require(given == type, kOp, ' ', kNames[i], " is ", type_name(given), ", expected ", type_name(type));
  }
  for (const std::size_t i : {kLengths, kTotal}) {
    const DataType given = node.inputs[i].type.value_or(DataType::kI32);
    require(given == DataType::kI32, kOp, ' ', kNames[i], " is ", type_name(given), ", expected i32");
  }
  if (has_input(node, kPositions)) {
    const DataType given = node.inputs[kPositions].type.value_or(DataType::kI64);
    require(given == DataType::kI64, kOp, " position_ids is ", type_name(given), ", expected i64");
  }
}

void check_pairs(const InferContext& node) {
  for (const auto& [a, b] : {std::pair(kKey, kValue), {kPastKey, kPastValue}, {kCos, kSin}}) {
    require(has_input(node, a) == has_input(node, b), kOp, " has one of ", kNames[a], " and ", kNames[b],
            ", expected both");
  }
  const bool rotary = node.attributes.integer("do_rotary", 0) != 0;
  require(rotary == has_input(node, kCos), kOp, " do_rotary is ", rotary ? 1 : 0, ", but cos_cache is ",
          rotary ? "absent" : "given");
}

/// T, from a total that follows from shapes or is a constant, else P + S.
Dim present_of(const InferContext& node, const Dim& past, const Dim& tokens) {
  const ValueInfo& total = node.inputs[kTotal];
  std::optional<std::int64_t> known;
  if (total.elements && total.elements->size() == 1 && (*total.elements)[0].is_number()) {
    known = (*total.elements)[0].factor;
  } else if (kTotal < node.constants.size() && node.constants[kTotal] && node.constants[kTotal].count() == 1) {
    known = integer_at_run(kOp, node.constants[kTotal], "total_sequence_length");
  }
  if (known && past.is_number()) return Dim(std::max(past.factor, *known));
  if (known || !node.is_final()) return node.unknown_size(0);
  return sum_of(node, past, tokens);
}

}  // namespace

std::optional<Sizes> sizes_of(const InferContext& node, const std::optional<Dim>& present) {
  check_inputs(kOp, node, 1, 14);
  for (const std::size_t i : {kLengths, kTotal}) {
    require(has_input(node, i), kOp, ' ', kNames[i], " (input ", i, ") is missing");
  }
  check_outputs(kOp, node, static_cast<int>(kOutputs));
  for (std::size_t i = kInputs; i < node.inputs.size(); ++i) {
    if (has_input(node, i)) fail(ErrorCode::kUnsupported, kOp, " input ", i, " (a scale) is not supported");
  }
  const std::int64_t heads = node.attributes.integer("num_heads"), kv = node.attributes.integer("kv_num_heads");
  check_attributes(node, heads, kv);
  check_types(node);
  check_pairs(node);
  check_one_element(kOp, node, kTotal, "total_sequence_length");
  if (!node.inputs[kQuery].dims) return std::nullopt;
  const DimList& q = *node.inputs[kQuery].dims;
  require(q.size() == 3, kOp, " query has rank ", q.size(), ", expected 3");
  const std::int64_t columns = has_input(node, kKey) ? heads : heads + 2 * kv;
  require(!q[2].is_number() || (q[2].factor > 0 && q[2].factor % columns == 0), kOp, " query is ", q[2],
          " wide, expected a multiple of ", columns, " heads");
  Sizes s;
  s.batch = q[0];
  s.tokens = q[1];
  const auto head_dim = divided(q[2], Dim(columns));
  s.head_dim = head_dim ? *head_dim : node.unknown_size(1);
  check_dims(node, kKey, {s.batch, s.tokens, s.head_dim * Dim(kv)});
  check_dims(node, kValue, {s.batch, s.tokens, s.head_dim * Dim(kv)});
  if (has_input(node, kPastKey)) {
    if (!node.inputs[kPastKey].dims) return std::nullopt;
    const DimList& past = *node.inputs[kPastKey].dims;
    require(past.size() == 4, kOp, " past_key has rank ", past.size(), ", expected 4");
    s.past = past[2];
    check_dims(node, kPastKey, {s.batch, kv, s.past, s.head_dim});
    check_dims(node, kPastValue, {s.batch, kv, s.past, s.head_dim});
  }
  s.present = present ? *present : present_of(node, s.past, s.tokens);
  check_dims(node, kLengths, {s.batch});
  check_dims(node, kPositions, {s.batch, s.tokens});
  if (has_input(node, kBias) && node.inputs[kBias].dims) {
    const DimList& bias = *node.inputs[kBias].dims;
    require(bias.size() == 4, kOp, " attention_bias has rank ", bias.size(), ", expected 4");
    check_dims(node, kBias, {s.batch, 1, s.tokens, bias[3]});
  }
  check_dims(node, kSink, {heads});
  if (has_input(node, kCos) && node.inputs[kCos].dims) {
    const DimList& cos = *node.inputs[kCos].dims;
    require(cos.size() == 2, kOp, " cos_cache has rank ", cos.size(), ", expected 2");
    check_dims(node, kSin, cos);
    require(!cos[1].is_number() || !s.head_dim.is_number() || 2 * cos[1].factor <= s.head_dim.factor, kOp,
            " cos_cache has ", cos[1], " columns, expected at most half of a head's ", s.head_dim);
  }
  return s;
}

}  // namespace headway::group_query
