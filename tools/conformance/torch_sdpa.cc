// scaled_dot_product_attention in terms of the library: any rank becomes [B, H, S, D] by views. See torch_call.h.
#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "tools/conformance/empty_rows.h"
#include "tools/conformance/torch_call.h"

namespace headway::tools {
namespace {

constexpr int kCoreRank = 4;

// The axes before the last `inner` ones.
Dims leading(const Dims& dims, int inner) { return Dims(std::span(dims.begin(), dims.end() - inner)); }

Dims joined(const Dims& first, std::initializer_list<std::int64_t> last) {
  Dims out = first;
  for (const std::int64_t size : last) out.push_back(size);
  return out;
}

// Right-aligned broadcast of two lists of sizes.
Dims broadcast(const Dims& a, const Dims& b, const char* name) {
  Dims out = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  for (int i = 1; i <= shorter.rank(); ++i) {
    std::int64_t& size = out[out.rank() - i];
    const std::int64_t other = shorter[shorter.rank() - i];
    require(size == other || size == 1 || other == 1, name, " has leading shape ", b,
            ", which does not broadcast with ", a);
    if (size == 1) size = other;
  }
  return out;
}

// Merges the leading axes into one, or adds unit axes, until four are left. A view wherever the strides allow it.
ConstTensorView folded(ConstTensorView view, Tensor* storage) {
  while (view.rank() < kCoreRank) view = with_unit_axis(view, 0);
  const int merged = view.rank() - kCoreRank + 1;
  std::int64_t size = 1, stride = 0;
  bool mergeable = view.count() > 0;
  for (int i = merged - 1; i >= 0; --i) {
    if (view.dims[i] == 1) continue;
    if (size == 1) {
      stride = view.strides[i];
    } else {
      mergeable = mergeable && view.strides[i] == size * stride;
    }
    size *= view.dims[i];
  }
  Dims dims = {size};
  for (int i = merged; i < view.rank(); ++i) dims.push_back(view.dims[i]);
  if (!mergeable) {
    *storage = packed(view);
    return std::as_const(*storage).view().reshaped(dims);
  }
  Dims strides = {stride};
  for (int i = merged; i < view.rank(); ++i) strides.push_back(view.strides[i]);
  return ConstTensorView(view.data, view.type, dims, strides);
}

}  // namespace

CallResult call_sdpa(const SdpaCall& call, const Execution& execution) {
  for (const auto& [view, name] : {std::pair(&call.query, "query"), {&call.key, "key"}, {&call.value, "value"}}) {
    require(view->rank() >= 2, name, " has rank ", view->rank(), ", expected at least 2");
    require(view->rank() == call.query.rank(), name, " has rank ", view->rank(), ", expected ", call.query.rank(),
            " as query has");
  }
  const int rank = call.query.rank();
  const Dims &q = call.query.dims, &k = call.key.dims, &v = call.value.dims;
  const std::int64_t query_len = q[rank - 2], key_len = k[rank - 2], head_dim = q.back(), value_head_dim = v.back();
  require(k.back() == head_dim, "key has width ", k.back(), ", expected ", head_dim, " as query has");
  require(v[rank - 2] == key_len, "value has length ", v[rank - 2], ", expected key length ", key_len);

  // Heads may be grouped, so they do not take part in the broadcast of the axes before them.
  const bool has_heads = rank >= 3;
  const std::int64_t heads = has_heads ? q[rank - 3] : 1;
  const std::int64_t kv_heads = has_heads ? k[rank - 3] : 1;
  require(!has_heads || v[rank - 3] == kv_heads, "value has ", has_heads ? v[rank - 3] : 1, " heads, expected ",
          kv_heads, " as key has");
  const int inner = has_heads ? 3 : 2;
  const Dims outer = broadcast(broadcast(leading(q, inner), leading(k, inner), "key"), leading(v, inner), "value");
  const Dims outer_heads = has_heads ? joined(outer, {heads}) : outer;
  const Dims outer_kv_heads = has_heads ? joined(outer, {kv_heads}) : outer;

  F32Pool pool;
  const DataType type = compute_type(call.query.type);
  const auto input = [&](const ConstTensorView& view, const char* name) {
    return pool.of(type, view, name, "query is");
  };
  Tensor storage[4];
  AttentionArgs args;
  args.query = folded(input(call.query, "query").broadcast_to(joined(outer_heads, {query_len, head_dim})), &storage[0]);
  args.key = folded(input(call.key, "key").broadcast_to(joined(outer_kv_heads, {key_len, head_dim})), &storage[1]);
  args.value =
      folded(input(call.value, "value").broadcast_to(joined(outer_kv_heads, {key_len, value_head_dim})), &storage[2]);
  args.mask = pool.mask(call.attn_mask, "attn_mask");
  if (args.mask) {
    const Dims whole = joined(outer_heads, {query_len, key_len});
    require(args.mask.rank() <= whole.rank(), "attn_mask has rank ", args.mask.rank(), ", expected at most ",
            whole.rank());
    // Checks the shape; the core broadcasts by itself as long as its four axes are enough.
    const ConstTensorView expanded = args.mask.broadcast_to(whole);
    if (rank > kCoreRank) args.mask = folded(expanded, &storage[3]);
  }
  args.key_lengths = call.key_lengths;

  AttentionSpec spec;
  spec.type = type;
  spec.batch = args.query.dims[0];
  spec.num_heads = heads;
  spec.num_kv_heads = kv_heads;
  spec.query_len = query_len;
  spec.key_len = key_len;
  spec.head_dim = head_dim;
  spec.value_head_dim = value_head_dim;
  apply_semantics("torch_sdpa", call.variant.causal, &spec);
  spec.scale = call.variant.scale;
  spec.softcap = call.variant.softcap;
  spec.window = call.variant.window;
  spec.key_lengths = static_cast<bool>(call.key_lengths);
  if (args.mask) spec.mask = args.mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
  if (call.variant.weights == WeightsOutput::kMean) spec.scores_output = ScoresOutput::kMeanProbabilities;
  if (call.variant.weights == WeightsOutput::kPerHead) spec.scores_output = ScoresOutput::kProbabilities;

  CallResult result;
  result.output = nan_tensor(joined(outer_heads, {query_len, value_head_dim}), type);
  const Dims core_out = {spec.batch, heads, query_len, value_head_dim};
  args.out = result.output.view().reshaped(core_out);
  if (call.variant.weights != WeightsOutput::kNone) {
    const bool per_head = call.variant.weights == WeightsOutput::kPerHead;
    result.has_weights = true;
    result.weights = nan_tensor(joined(per_head ? outer_heads : outer, {query_len, key_len}));
    args.scores = result.weights.view().reshaped(per_head ? Dims{spec.batch, heads, query_len, key_len}
                                                          : Dims{spec.batch, query_len, key_len});
  }

  const Attention attention(spec, execution.attention);
  const AlignedBuffer workspace(attention.workspace_bytes(execution.threads.workers()));
  attention.run(args, workspace.data(), execution.threads);
  result.implementation = attention.implementation();
  find_empty_rows(attention.spec(), args, true, call.variant.weights, &result);
  result.empty_output.assign(static_cast<std::size_t>(value_head_dim), 0.0f);
  return result;
}

}  // namespace headway::tools
