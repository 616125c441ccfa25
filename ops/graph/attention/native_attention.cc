// The Attention operator: query, key and value as [B, H, S, D]; see register_ops.h for inputs and attributes.
#include <utility>
#include <vector>

#include "ops/attention/known_mask.h"
#include "ops/graph/attention/attributes.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr MaskInputs kAt{.mask = 3, .key_mask = 4, .key_lengths = 5, .offsets = 6};

/// Axis i of [B, H, S, D] is axis order[i] of the tensor; empty: it lies like that already. Rank 3 is [1, H, S, D].
using Axes = std::vector<std::int64_t>;

Axes axes_of(const NodeContext& node, const char* key) {
  Axes axes = node.attributes.integers(key);
  require(axes.empty() || axes.size() == 4, "Attention ", key, " has ", axes.size(), " axes, expected 4");
  bool seen[4] = {};
  for (const std::int64_t axis : axes) {
    require(axis >= 0 && axis < 4 && !seen[axis], "Attention ", key, " is no permutation of 0 to 3");
    seen[axis] = true;
  }
  return axes;
}

/// Any view as [B, H, S, D].
template <class View>
View with_heads(View view, const Axes& axes) {
  if (view.rank() == 3) {
    const Dims& d = view.dims;
    const Dims& s = view.strides;
    return View(view.data, view.type, {1, d[0], d[1], d[2]}, {0, s[0], s[1], s[2]});
  }
  if (axes.empty()) return view;
  return view.permuted(
      {static_cast<int>(axes[0]), static_cast<int>(axes[1]), static_cast<int>(axes[2]), static_cast<int>(axes[3])});
}

/// The same of dims alone.
Dims with_heads(const Dims& dims, const Axes& axes) {
  return with_heads(ConstTensorView(nullptr, DataType::kF32, dims), axes).dims;
}

struct Layout {
  Axes query, key, value, out;
};
Layout layout_of(const NodeContext& node) {
  return {axes_of(node, "query_axes"), axes_of(node, "key_axes"), axes_of(node, "value_axes"),
          axes_of(node, "out_axes")};
}

/// One batch entry or one head may stand for all, as in a product of matrices.
std::int64_t joined(const char* axis, std::int64_t a, std::int64_t b) {
  require(a == b || a == 1 || b == 1, "Attention query, key and value have ", a, " and ", b, " ", axis,
          ", expected the same or 1");
  return a == 1 ? b : a;
}

/// A mask may be what a batch, a head or a query comes from, as in a sum with the scores.
void join_mask(const NodeContext& node, AttentionSpec* spec) {
  if (spec->mask == MaskKind::kNone) return;
  const Dims& mask = node.inputs[kAt.mask].dims;
  const int rank = mask.rank();
  if (rank >= 4 && spec->batch == 1) spec->batch = mask[rank - 4];
  if (rank >= 3 && spec->num_heads == 1) spec->num_heads = mask[rank - 3];
  if (rank >= 2 && spec->query_len == 1) spec->query_len = mask[rank - 2];
}

AttentionSpec spec_of(const NodeContext& node, const Layout& layout) {
  check_inputs("Attention", node, 3, 7);
  for (const std::size_t i : {0, 1, 2}) {
    check_f32_or_bf16("Attention", node, i);
    const int rank = node.inputs[i].dims.rank();
    require(rank == 4 || rank == 3, "Attention input ", i, " has rank ", rank, ", expected 4 or 3");
    require(rank == node.inputs[0].dims.rank(), "Attention input ", i, " has rank ", rank, ", expected ",
            node.inputs[0].dims.rank(), " as input 0");
  }
  const Dims q = with_heads(node.inputs[0].dims, layout.query);
  const Dims k = with_heads(node.inputs[1].dims, layout.key);
  const Dims v = with_heads(node.inputs[2].dims, layout.value);
  require(k[3] == q[3], "Attention key has dims ", k, ", expected a last dim of ", q[3]);
  require(v[2] == k[2], "Attention value has dims ", v, ", expected ", k[2], " keys");
  AttentionSpec spec{attention_rules_of(node, kAt)};
  spec.type = node.inputs[0].type;
  spec.batch = joined("batch entries", joined("batch entries", q[0], k[0]), v[0]);
  spec.num_kv_heads = joined("heads", k[1], v[1]);
  spec.num_heads = q[1] == 1 ? *spec.num_kv_heads : q[1];
  spec.query_len = q[2];
  spec.head_dim = q[3];
  spec.key_len = k[2];
  spec.value_head_dim = v[3];
  join_mask(node, &spec);
  return spec;
}

class AttentionPlan : public NodePlan {
 public:
  AttentionPlan(const AttentionSpec& spec, const AttentionOptions& options, Layout layout)
      : attention_(spec, options), layout_(std::move(layout)) {}
  std::size_t workspace_bytes(int workers) const override { return attention_.workspace_bytes(workers); }
  std::string explain() const override { return attention_.explain(); }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    AttentionArgs args;
    const AttentionSpec& spec = attention_.spec();
    args.query =
        with_heads(inputs[0], layout_.query).broadcast_to({spec.batch, spec.num_heads, spec.query_len, spec.head_dim});
    args.key =
        with_heads(inputs[1], layout_.key).broadcast_to({spec.batch, *spec.num_kv_heads, spec.key_len, spec.head_dim});
    args.value = with_heads(inputs[2], layout_.value)
                     .broadcast_to({spec.batch, *spec.num_kv_heads, spec.key_len, *spec.value_head_dim});
    if (spec.mask != MaskKind::kNone) args.mask = inputs[kAt.mask];
    args.key_mask = optional_input(inputs, kAt.key_mask);
    args.key_lengths = optional_input(inputs, kAt.key_lengths);
    args.offsets = optional_input(inputs, kAt.offsets);
    args.out = with_heads(outputs[0], layout_.out);
    if (spec.scores_output == ScoresOutput::kMeanProbabilities) {
      args.scores = outputs[1].reshaped({spec.batch, spec.query_len, spec.key_len});  // without B: one batch entry
    } else if (spec.scores_output != ScoresOutput::kNone) {
      args.scores = with_heads(outputs[1], {});
    }
    attention_.run(args, context.workspace, context.threads, context.profiler);
  }

 private:
  Attention attention_;
  Layout layout_;
};

class AttentionOp : public Operator {
 public:
  std::string_view name() const override { return "Attention"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    const Layout layout = layout_of(node);
    const AttentionSpec spec = spec_of(node, layout);
    const Dims natural{spec.batch, spec.num_heads, spec.query_len, *spec.value_head_dim};
    Dims out = natural;
    for (std::size_t i = 0; i < layout.out.size(); ++i)
      out[static_cast<int>(layout.out[i])] = natural[static_cast<int>(i)];
    std::vector<TensorInfo> outputs{{spec.type, out}};
    if (spec.scores_output != ScoresOutput::kNone) outputs.push_back(scores_info(spec));
    if (node.inputs[0].dims.rank() == 3) {
      for (TensorInfo& output : outputs) drop_batch(&output.dims);
    }
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    Layout layout = layout_of(node);
    AttentionSpec spec = spec_of(node, layout);
    if (node.constants.size() > kAt.mask && node.constants[kAt.mask]) use_known_mask(node.constants[kAt.mask], &spec);
    return std::make_unique<AttentionPlan>(spec, attention_options_of(node), std::move(layout));
  }

 private:
  static void drop_batch(Dims* dims) {
    Dims rest;
    for (int i = 1; i < dims->rank(); ++i) rest.push_back((*dims)[i]);
    *dims = rest;
  }
};

}  // namespace

std::unique_ptr<Operator> make_attention_op() { return std::make_unique<AttentionOp>(); }

}  // namespace headway
