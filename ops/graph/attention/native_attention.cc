// The Attention operator: query, key and value as [B, H, S, D]; see register_ops.h for inputs and attributes.
#include <optional>
#include <utility>
#include <vector>

#include "ops/attention/known_mask.h"
#include "ops/attention/spec.h"
#include "ops/graph/attention/attributes.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr MaskInputs kAt{.mask = 3, .key_mask = 4, .key_lengths = 5, .offsets = 6};

/// Axis i of [B, H, S, D] is axis order[i] of the tensor; empty: it lies like that already. Rank 3 is [1, H, S, D].
using Axes = std::vector<std::int64_t>;

Axes axes_of(const Attributes& attributes, const char* key) {
  Axes axes = attributes.integers(key);
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

struct Layout {
  Axes query, key, value, out;
};
Layout layout_of(const Attributes& node) {
  return {axes_of(node, "query_axes"), axes_of(node, "key_axes"), axes_of(node, "value_axes"),
          axes_of(node, "out_axes")};
}

/// The same of dims alone.
DimList with_heads(const ValueInfo& input, const Axes& axes) {
  const DimList& dims = *input.dims;
  if (dims.size() == 3) return {1, dims[0], dims[1], dims[2]};
  if (axes.empty()) return dims;
  DimList ordered;
  for (const std::int64_t axis : axes) ordered.push_back(dims[static_cast<std::size_t>(axis)]);
  return ordered;
}

/// False where all batches and heads are to be there, as ONNX's Attention has it.
bool broadcasts(const InferContext& node) { return node.attributes.integer("broadcast", 1) != 0; }

/// One batch entry or one head may stand for all, as in a product of matrices.
Dim joined(const InferContext& node, const char* axis, const Dim& a, const Dim& b) {
  const bool stands = broadcasts(node) && (a.is(1) || b.is(1));
  require(may_equal(a, b) || stands, "Attention query, key and value have ", a, " and ", b, " ", axis,
          ", expected the same or 1");
  return broadcast_dim(node, a, b);
}

/// Sizes as far as they are known.
struct Sizes {
  Dim batch = 1, num_heads = 1, num_kv_heads = 1, query_len = 1, key_len = 1, head_dim = 1, value_head_dim = 1;
  DimList full() const { return {batch, num_heads, query_len, key_len}; }
};

/// A mask may be what a batch, a head or a query comes from, as in a sum with the scores.
void join_mask(const InferContext& node, Sizes* sizes) {
  if (!has_input(node, kAt.mask)) return;
  Dim* const axes[] = {&sizes->query_len, &sizes->num_heads, &sizes->batch};
  if (!node.inputs[kAt.mask].dims) {
    for (std::size_t i = 0; i < 3 && broadcasts(node); ++i) {
      if (axes[i]->is(1)) *axes[i] = node.unknown_size(static_cast<std::int64_t>(i));
    }
    return;
  }
  const DimList& mask = *node.inputs[kAt.mask].dims;
  for (std::size_t i = 0; i < 3 && i + 2 <= mask.size(); ++i) {
    const Dim& given = mask[mask.size() - 2 - i];
    if (!broadcasts(node)) break;
    if (axes[i]->is(1) || !axes[i]->is_number()) *axes[i] = broadcast_dim(node, *axes[i], given);
  }
  check_mask_dims("mask", node.inputs[kAt.mask], sizes->full(), takes_short_mask(node));
}

/// As many as the query has, or one for all.
Dim query_heads(const InferContext& node, const Dim& query, const Dim& kv) {
  if (!broadcasts(node)) return query;
  if (query.is(1)) return kv;
  const bool certain = query.is_number() || kv.is(1) || kv == query;
  return certain ? query : node.unknown_size(3);
}

/// nullopt where a rank is not known.
std::optional<Sizes> sizes_of(const InferContext& node, const Layout& layout) {
  check_inputs("Attention", node, 3, 7);
  for (const std::size_t i : {0, 1, 2}) {
    check_f32_or_bf16("Attention", node, i);
    if (!node.inputs[i].dims) return std::nullopt;
    const int rank = node.inputs[i].rank();
    require(rank == 4 || rank == 3, "Attention input ", i, " has rank ", rank, ", expected 4 or 3");
    require(rank == node.inputs[0].rank(), "Attention input ", i, " has rank ", rank, ", expected ",
            node.inputs[0].rank(), " as input 0");
  }
  const DimList q = with_heads(node.inputs[0], layout.query);
  const DimList k = with_heads(node.inputs[1], layout.key);
  const DimList v = with_heads(node.inputs[2], layout.value);
  require(may_equal(k[3], q[3]), "Attention key has dims ", k, ", expected a last dim of ", q[3]);
  require(may_equal(v[2], k[2]), "Attention value has dims ", v, ", expected ", k[2], " keys");
  Sizes sizes;
  sizes.batch = joined(node, "batch entries", joined(node, "batch entries", q[0], k[0]), v[0]);
  sizes.num_kv_heads = joined(node, "heads", k[1], v[1]);
  sizes.num_heads = query_heads(node, q[1], sizes.num_kv_heads);
  sizes.query_len = q[2];
  sizes.head_dim = q[3].is_number() ? q[3] : k[3];
  sizes.key_len = k[2].is_number() ? k[2] : v[2];
  sizes.value_head_dim = v[3];
  join_mask(node, &sizes);
  return sizes;
}

AttentionSpec spec_of(const InferContext& node, const Sizes& sizes) {
  AttentionSpec spec{attention_rules_of(node, kAt)};
  const bool heads = sizes.num_heads.is_number() && sizes.num_kv_heads.is_number();
  spec.type = node.inputs[0].type.value_or(DataType::kF32);
  spec.batch = number_or_one(sizes.batch);
  spec.num_kv_heads = heads ? sizes.num_kv_heads.factor : 1;
  spec.num_heads = heads ? sizes.num_heads.factor : 1;
  spec.query_len = number_or_one(sizes.query_len);
  spec.head_dim = number_or_one(sizes.head_dim);
  spec.key_len = number_or_one(sizes.key_len);
  spec.value_head_dim = number_or_one(sizes.value_head_dim);
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
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    check_outputs("Attention", node, 2);
    const Layout layout = layout_of(node.attributes);
    const std::optional<Sizes> sizes = sizes_of(node, layout);
    const ScoresOutput mode = complete_spec(spec_of(node, sizes.value_or(Sizes()))).scores_output;
    Inferred outputs{{.type = node.inputs[0].type, .dims = {}, .elements = {}}};
    if (node.num_outputs > 1) outputs.push_back({.type = DataType::kF32, .dims = {}, .elements = {}});
    if (!sizes) return outputs;
    const DimList natural{sizes->batch, sizes->num_heads, sizes->query_len, sizes->value_head_dim};
    DimList out = natural;
    for (std::size_t i = 0; i < layout.out.size(); ++i) out[static_cast<std::size_t>(layout.out[i])] = natural[i];
    outputs[0].dims = std::move(out);
    if (node.num_outputs > 1) outputs[1].dims = scores_dims(mode, sizes->full());
    if (node.inputs[0].rank() == 3) {
      for (ValueInfo& output : outputs) output.dims->erase(output.dims->begin());
    }
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    Layout layout = layout_of(node.attributes);
    const PlannedInputs planned(node);
    AttentionSpec spec = spec_of(planned.context(), sizes_of(planned.context(), layout).value());
    if (node.constants.size() > kAt.mask && node.constants[kAt.mask]) use_known_mask(node.constants[kAt.mask], &spec);
    return std::make_unique<AttentionPlan>(spec, attention_options_of(node), std::move(layout));
  }
};

}  // namespace

std::unique_ptr<Operator> make_attention_op() { return std::make_unique<AttentionOp>(); }

}  // namespace headway
