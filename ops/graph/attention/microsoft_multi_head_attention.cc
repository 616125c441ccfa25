// com.microsoft.MultiHeadAttention: projected query, key and value, so that it is the core with a bias in front of it.
// Inputs in ONNX Runtime's order, ? optional; B batch, N heads, S queries, L new keys, P keys of the past, T = P + L:
//   query [B, S, N·H] or, alone, [B, S, N, 3, H]; key? [B, L, N·H], [B, L, N, 2, H] without value, or [B, N, L, H];
//   value? [B, L, N·Hv] or [B, N, L, Hv]; bias? [2·N·H + N·Hv]; key_padding_mask? and attention_bias? as
//   microsoft_core_op.h has them; past_key? [B, N, P, H], past_value? [B, N, P, Hv]
//   → output [B, S, N·Hv], present_key? [B, N, T, H], present_value? [B, N, T, Hv], qk? [B, N, S, T]: biased scores
// Decides which view of the inputs is a head.
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

bool is_given(const NodeContext& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i].present; }

[[noreturn]] void fail_rank(const NodeContext& node, std::size_t i, const char* expected) {
  fail(ErrorCode::kInvalidArgument, kOp, ' ', kNames[i], " has rank ", node.inputs[i].dims.rank(), ", expected ",
       expected);
}

std::int64_t width_of_heads(const NodeContext& node, std::size_t i, std::int64_t heads) {
  const std::int64_t width = node.inputs[i].dims[2];
  require(width > 0 && width % heads == 0, kOp, ' ', kNames[i], " is ", width,
          " wide, expected a multiple of num_heads = ", heads);
  return width / heads;
}

void check_dims(const NodeContext& node, std::size_t i, const Dims& expected) {
  check_microsoft_dims(kOp, kNames[i], node.inputs[i].dims, expected);
}

/// Sizes of query, key and value; the length of the new keys is left in key_len.
void read_heads(const NodeContext& node, AttentionSpec* c) {
  const Dims& q = node.inputs[kQuery].dims;
  c->batch = q[0];
  c->query_len = q[1];
  if (!is_given(node, kKey)) {
    require(!is_given(node, kValue), kOp, " has a value but no key, expected both or neither");
    if (q.rank() != 5) fail_rank(node, kQuery, "5 where there is no key");
    check_dims(node, kQuery, {q[0], q[1], c->num_heads, 3, q[4]});
    c->key_len = q[1];
    c->head_dim = q[4];
    c->value_head_dim = q[4];
    return;
  }
  if (q.rank() != 3) fail_rank(node, kQuery, "3 where there is a key");
  c->head_dim = width_of_heads(node, kQuery, c->num_heads);
  const Dims& k = node.inputs[kKey].dims;
  if (k.rank() == 5) {
    require(!is_given(node, kValue), kOp, " has a value beside a key that holds both");
    check_dims(node, kKey, {q[0], k[1], c->num_heads, 2, c->head_dim});
    c->key_len = k[1];
    c->value_head_dim = c->head_dim;
    return;
  }
  if (k.rank() != 3 && k.rank() != 4) fail_rank(node, kKey, "3, 4 or 5");
  require(is_given(node, kValue), kOp, " value is missing");
  const Dims& v = node.inputs[kValue].dims;
  if (v.rank() != k.rank()) fail_rank(node, kValue, k.rank() == 3 ? "3 as key" : "4 as key");
  if (k.rank() == 3) {
    check_dims(node, kKey, {q[0], k[1], q[2]});
    check_dims(node, kValue, {q[0], k[1], v[2]});
    c->key_len = k[1];
    c->value_head_dim = width_of_heads(node, kValue, c->num_heads);
    return;
  }
  check_dims(node, kKey, {q[0], c->num_heads, k[2], c->head_dim});
  check_dims(node, kValue, {q[0], c->num_heads, k[2], v[3]});
  c->key_len = k[2];
  c->value_head_dim = v[3];
}

void read_past(const NodeContext& node, MicrosoftCore* a) {
  AttentionSpec& c = a->core;
  a->has_past = is_given(node, kPastKey);
  require(a->has_past == is_given(node, kPastValue), kOp, " has one of past_key and past_value, expected both");
  if (!a->has_past) return;
  require(!is_given(node, kKey) || node.inputs[kKey].dims.rank() != 4, kOp,
          " has a past beside a key of rank 4, expected rank 3 or 5");
  const Dims& past = node.inputs[kPastKey].dims;
  if (past.rank() != 4) fail_rank(node, kPastKey, "4");
  a->past = past[2];
  check_dims(node, kPastKey, {c.batch, c.num_heads, a->past, c.head_dim});
  check_dims(node, kPastValue, {c.batch, c.num_heads, a->past, *c.value_head_dim});
  c.key_len += a->past;
}

Heads read(const NodeContext& node) {
  check_inputs(kOp, node, 1, kInputs);
  Heads heads;
  MicrosoftCore& a = heads.core;
  AttentionSpec& c = a.core;
  a.op = kOp;
  a.type = node.inputs[kQuery].type;
  heads.outputs = static_cast<std::size_t>(node.num_outputs);
  require(heads.outputs <= kOutputs, kOp, " has ", heads.outputs, " outputs, expected at most ", kOutputs);
  for (const std::size_t i : {kKey, kValue, kBias, kPastKey, kPastValue}) {
    if (is_given(node, i)) check_microsoft_type(a, node, i, kNames[i]);
  }
  for (const std::size_t i : {kPastLength, kCacheIndirection}) {
    if (is_given(node, i)) fail(ErrorCode::kUnsupported, kOp, ' ', kNames[i], " (input ", i, ") is not supported");
  }
  c.num_heads = node.attributes.integer("num_heads");
  require(c.num_heads >= 1, kOp, " num_heads is ", c.num_heads, ", expected at least 1");
  read_heads(node, &c);
  read_past(node, &a);
  if (is_given(node, kBias)) {
    check_dims(node, kBias, {c.num_heads * (2 * c.head_dim + *c.value_head_dim)});
    heads.key_bias = !is_given(node, kKey) || node.inputs[kKey].dims.rank() != 4;
  }
  read_microsoft_masks(node, {kMask, kAttentionBias, "key_padding_mask"}, heads.outputs > kScores, &a);
  return heads;
}

MicrosoftCoreWants wants(const NodeContext& node, const Heads& heads) {
  return {.heads_type = heads.core.type,
          .query_bias = is_given(node, kBias),
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
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    const Heads heads = read(node);
    const AttentionSpec& c = heads.core.core;
    const DataType type = heads.core.type;
    std::vector<TensorInfo> outputs{{type, {c.batch, c.query_len, c.num_heads * *c.value_head_dim}},
                                    {type, {c.batch, c.num_heads, c.key_len, c.head_dim}},
                                    {type, {c.batch, c.num_heads, c.key_len, *c.value_head_dim}},
                                    {type, {c.batch, c.num_heads, c.query_len, c.key_len}}};
    outputs.resize(heads.outputs);
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
