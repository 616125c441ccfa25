// The Attention operator: query, key and value as [B, H, S, D]; see register_ops.h for inputs and attributes.
#include "ops/attention/attention_attributes_op.h"
#include "ops/operators.h"

namespace headway {
namespace {

constexpr MaskInputs kAt{.mask = 3, .key_mask = 4, .key_lengths = 5, .offsets = 6};

AttentionSpec spec_of(const NodeContext& node) {
  check_inputs("Attention", node, 3, 7);
  for (const std::size_t i : {0, 1, 2}) {
    check_f32("Attention", node, i);
    require(node.inputs[i].dims.rank() == 4, "Attention input ", i, " has rank ", node.inputs[i].dims.rank(),
            ", expected 4");
  }
  const Dims& q = node.inputs[0].dims;
  const Dims& k = node.inputs[1].dims;
  const Dims& v = node.inputs[2].dims;
  require(k == Dims({q[0], k[1], k[2], q[3]}), "Attention key has dims ", k, ", expected ",
          Dims({q[0], k[1], k[2], q[3]}));
  require(v == Dims({k[0], k[1], k[2], v[3]}), "Attention value has dims ", v, ", expected ",
          Dims({k[0], k[1], k[2], v[3]}));
  AttentionSpec spec = attention_spec_of(node, kAt);
  spec.batch = q[0];
  spec.num_heads = q[1];
  spec.query_len = q[2];
  spec.head_dim = q[3];
  spec.num_kv_heads = k[1];
  spec.key_len = k[2];
  spec.value_head_dim = v[3];
  return spec;
}

class AttentionPlan : public NodePlan {
 public:
  AttentionPlan(const AttentionSpec& spec, const AttentionOptions& options) : attention_(spec, options) {}
  std::size_t workspace_bytes(int workers) const override { return attention_.workspace_bytes(workers); }
  std::string explain() const override { return attention_.explain(); }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    AttentionArgs args;
    args.query = inputs[0];
    args.key = inputs[1];
    args.value = inputs[2];
    args.mask = optional_input(inputs, kAt.mask);
    args.key_mask = optional_input(inputs, kAt.key_mask);
    args.key_lengths = optional_input(inputs, kAt.key_lengths);
    args.offsets = optional_input(inputs, kAt.offsets);
    args.out = outputs[0];
    if (attention_.spec().scores_output != ScoresOutput::kNone) args.scores = outputs[1];
    attention_.run(args, context.workspace, context.threads, context.profiler);
  }

 private:
  Attention attention_;
};

class AttentionOp : public Operator {
 public:
  std::string_view name() const override { return "Attention"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    const AttentionSpec spec = spec_of(node);
    std::vector<TensorInfo> outputs{
        {DataType::kF32, {spec.batch, spec.num_heads, spec.query_len, spec.value_head_dim}}};
    if (spec.scores_output != ScoresOutput::kNone) outputs.push_back(scores_info(spec));
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<AttentionPlan>(spec_of(node), attention_options_of(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_attention_op() { return std::make_unique<AttentionOp>(); }

}  // namespace headway
