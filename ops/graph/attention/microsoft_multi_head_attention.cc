// com.microsoft.MultiHeadAttention: projected query, key and value, so that it is the core with a bias in front of it.
// Inputs in ONNX Runtime's order, ? optional; B batch, N heads, S queries, L new keys, P keys of the past, T = P + L:
//   query [B, S, N·H] or, alone, [B, S, N, 3, H]; key? [B, L, N·H], [B, L, N, 2, H] without value, or [B, N, L, H];
//   value? [B, L, N·Hv] or [B, N, L, Hv]; bias? [2·N·H + N·Hv]; key_padding_mask? and attention_bias? as
//   microsoft_core_op.h has them; past_key? [B, N, P, H], past_value? [B, N, P, Hv]
//   → output [B, S, N·Hv], present_key? [B, N, T, H], present_value? [B, N, T, Hv], qk? [B, N, S, T]: biased scores
// Decides which view of the inputs is a head.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "ops/graph/attention/attributes.h"
#include "ops/graph/attention/microsoft_core.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr const char* kOp = "com.microsoft.MultiHeadAttention";
enum At : std::size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kMask,
  kAttentionBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kCacheIndirection,
  kInputs
};
const char* const kNames[] = {"query",
                              "key",
                              "value",
                              "bias",
                              "",
                              "attention_bias",
                              "past_key",
                              "past_value",
                              "past_sequence_length",
                              "cache_indirection"};
enum Out : std::size_t { kOut, kPresentKey, kPresentValue, kScores, kOutputs };

struct Heads {
  MicrosoftCore core;
  bool key_bias = false;  ///< the bias is for key and value too
  std::size_t outputs = 1;
};

/// Throws unless the rank is known and one of these.
void check_rank(const InferContext& node, std::size_t i, std::initializer_list<int> allowed, const char* expected) {
  const int rank = node.inputs[i].rank();
  if (std::find(allowed.begin(), allowed.end(), rank) != allowed.end()) return;
  fail(ErrorCode::kInvalidArgument, kOp, ' ', kNames[i], " has rank ", rank, ", expected ", expected);
}

Dim width_of_heads(const InferContext& node, std::size_t i, std::int64_t heads) {
  const Dim& width = (*node.inputs[i].dims)[2];
  require(!width.is_number() || (width.factor > 0 && width.factor % heads == 0), kOp, ' ', kNames[i], " is ", width,
          " wide, expected a multiple of num_heads = ", heads);
  const auto of_one = divided(width, Dim(heads));
  return of_one ? *of_one : node.unknown_size(static_cast<std::int64_t>(8 + i));
}

void check_dims(const InferContext& node, std::size_t i, const DimList& expected) {
  check_microsoft_dims(kOp, kNames[i], *node.inputs[i].dims, expected);
}

/// Sizes of query, key and value; the length of the new keys is left in key_len.
void read_heads(const InferContext& node, MicrosoftSizes* s) {
  const DimList& q = *node.inputs[kQuery].dims;
  const bool has_key = has_input(node, kKey);
  require(has_key || !has_input(node, kValue), kOp, " has a value but no key, expected both or neither");
  check_rank(node, kQuery, {has_key ? 3 : 5}, has_key ? "3 where there is a key" : "5 where there is no key");
  s->batch = q[0];
  s->query_len = q[1];
  if (!has_key) {
    check_dims(node, kQuery, {q[0], q[1], s->num_heads, 3, q[4]});
    s->key_len = q[1];
    s->head_dim = s->value_head_dim = q[4];
    return;
  }
  s->head_dim = width_of_heads(node, kQuery, s->num_heads);
  const DimList& k = *node.inputs[kKey].dims;
  if (k.size() == 5) {
    require(!has_input(node, kValue), kOp, " has a value beside a key that holds both");
    check_dims(node, kKey, {q[0], k[1], s->num_heads, 2, s->head_dim});
    s->key_len = k[1];
    s->value_head_dim = s->head_dim;
    return;
  }
  check_rank(node, kKey, {3, 4}, "3, 4 or 5");
  require(has_input(node, kValue), kOp, " value is missing");
  check_rank(node, kValue, {static_cast<int>(k.size())}, k.size() == 3 ? "3 as key" : "4 as key");
  const DimList& v = *node.inputs[kValue].dims;
  if (k.size() == 3) {
    check_dims(node, kKey, {q[0], k[1], q[2]});
    check_dims(node, kValue, {q[0], k[1], v[2]});
    s->key_len = k[1];
    s->value_head_dim = width_of_heads(node, kValue, s->num_heads);
    return;
  }
  check_dims(node, kKey, {q[0], s->num_heads, k[2], s->head_dim});
  check_dims(node, kValue, {q[0], s->num_heads, k[2], v[3]});
  s->key_len = k[2];
  s->value_head_dim = v[3];
}

void read_past(const InferContext& node, MicrosoftSizes* s) {
  require(has_input(node, kPastKey) == has_input(node, kPastValue), kOp,
          " has one of past_key and past_value, expected both");
  if (!has_input(node, kPastKey)) return;
  require(!has_input(node, kKey) || node.inputs[kKey].rank() != 4, kOp,
          " has a past beside a key of rank 4, expected rank 3 or 5");
  check_rank(node, kPastKey, {4}, "4");
  s->past = (*node.inputs[kPastKey].dims)[2];
  check_dims(node, kPastKey, {s->batch, s->num_heads, s->past, s->head_dim});
  check_dims(node, kPastValue, {s->batch, s->num_heads, s->past, s->value_head_dim});
  s->key_len = sum_of(node, s->past, s->key_len);
}

bool ranks_known(const InferContext& node) {
  for (const std::size_t i : {kQuery, kKey, kValue, kPastKey, kPastValue}) {
    if (has_input(node, i) && !node.inputs[i].dims) return false;
  }
  return true;
}

/// Fills in what is known of the sizes; nothing where a rank is not known.
Heads read(const InferContext& node, std::optional<MicrosoftSizes>* known) {
  check_inputs(kOp, node, 1, kInputs);
  check_outputs(kOp, node, static_cast<int>(kOutputs));
  Heads heads;
  MicrosoftCore& a = heads.core;
  a.op = kOp;
  a.type = node.inputs[kQuery].type.value_or(DataType::kF32);
  heads.outputs = static_cast<std::size_t>(node.num_outputs);
  for (const std::size_t i : {kKey, kValue, kBias, kPastKey, kPastValue}) {
    if (has_input(node, i)) check_microsoft_type(a, node, i, kNames[i]);
  }
  for (const std::size_t i : {kPastLength, kCacheIndirection}) {
    if (has_input(node, i)) fail(ErrorCode::kUnsupported, kOp, ' ', kNames[i], " (input ", i, ") is not supported");
  }
  a.has_past = has_input(node, kPastKey);
  MicrosoftSizes s;
  s.num_heads = node.attributes.integer("num_heads");
  require(s.num_heads >= 1, kOp, " num_heads is ", s.num_heads, ", expected at least 1");
  if (!ranks_known(node)) return heads;
  read_heads(node, &s);
  read_past(node, &s);
  if (has_input(node, kBias)) {
    const Dim columns = sum_of(node, s.head_dim * Dim(2), s.value_head_dim) * Dim(s.num_heads);
    if (node.inputs[kBias].dims) check_dims(node, kBias, {columns});
    heads.key_bias = !has_input(node, kKey) || node.inputs[kKey].rank() != 4;
  }
  set_microsoft_sizes(s, &a);
  read_microsoft_masks(node, {kMask, kAttentionBias, "key_padding_mask"}, s, heads.outputs > kScores, &a);
  *known = s;
  return heads;
}

Heads read(const NodeContext& node) {
  const PlannedInputs planned(node);
  std::optional<MicrosoftSizes> sizes;
  return read(planned.context(), &sizes);
}

MicrosoftCoreWants wants(const NodeContext& node, const Heads& heads) {
  return {.heads_type = heads.core.type,
          .query_bias = has_input(node, kBias),
          .key_bias = heads.key_bias,
          .present_key = heads.outputs > kPresentKey,
          .present_value = heads.outputs > kPresentValue,
          .implementation = attention_options_of(node).implementation};
}

class MicrosoftMultiHeadAttentionPlan : public NodePlan {
 public:
  MicrosoftMultiHeadAttentionPlan(const NodeContext& node, const Heads& heads)
      : heads_(heads), core_(heads.core, wants(node, heads)) {}
  std::size_t workspace_bytes(int workers) const override { return core_.workspace_bytes(workers); }
  std::string explain() const override { return core_.explain(); }
  ExtendedInput extended_input(std::size_t output) const override {
    const bool present = heads_.core.has_past && (output == kPresentKey || output == kPresentValue);
    return {present ? static_cast<int>(output == kPresentKey ? kPastKey : kPastValue) : -1};
  }

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const auto output = [&](std::size_t i) { return i < outputs.size() ? outputs[i] : TensorView(); };
    MicrosoftCoreArgs args;
    const ConstTensorView key = optional_input(inputs, kKey);
    args.query = part(inputs[kQuery], 0);
    args.key = key ? part(key, 0) : part(inputs[kQuery], 1);
    args.value = !key ? part(inputs[kQuery], 2) : key.rank() == 5 ? part(key, 1) : part(inputs[kValue], 0);
    args.past_key = optional_input(inputs, kPastKey);
    args.past_value = optional_input(inputs, kPastValue);
    args.bias = optional_input(inputs, kBias);
    args.mask = optional_input(inputs, kMask);
    args.attention_bias = optional_input(inputs, kAttentionBias);
    args.out = outputs[kOut].split_axis(2, heads_.core.core.num_heads).permuted({0, 2, 1, 3});
    args.present_key = output(kPresentKey);
    args.present_value = output(kPresentValue);
    args.scores = output(kScores);
    core_.run(context, args);
  }

 private:
  /// One of what a tensor holds side by side, as [B, N, S, H].
  ConstTensorView part(const ConstTensorView& x, std::int64_t which) const {
    if (x.rank() == 4) return x;
    const ConstTensorView tokens = x.rank() == 5 ? x.selected(3, which) : x.split_axis(2, heads_.core.core.num_heads);
    return tokens.permuted({0, 2, 1, 3});
  }

  Heads heads_;
  MicrosoftCorePlan core_;
};

class MicrosoftMultiHeadAttentionOp : public Operator {
 public:
  std::string_view name() const override { return kOp; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    std::optional<MicrosoftSizes> sizes;
    read(node, &sizes);
    const ValueInfo unknown{.type = node.inputs[kQuery].type, .dims = {}, .elements = {}};
    std::vector<ValueInfo> outputs(kOutputs, unknown);
    if (sizes) {
      const MicrosoftSizes& s = *sizes;
      outputs[kOut].dims = DimList{s.batch, s.query_len, s.value_head_dim * Dim(s.num_heads)};
      outputs[kPresentKey].dims = DimList{s.batch, s.num_heads, s.key_len, s.head_dim};
      outputs[kPresentValue].dims = DimList{s.batch, s.num_heads, s.key_len, s.value_head_dim};
      outputs[kScores].dims = DimList{s.batch, s.num_heads, s.query_len, s.key_len};
    }
    outputs.resize(static_cast<std::size_t>(node.num_outputs));
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<MicrosoftMultiHeadAttentionPlan>(node, read(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_microsoft_multi_head_attention_op() {
  return std::make_unique<MicrosoftMultiHeadAttentionOp>();
}

}  // namespace headway
