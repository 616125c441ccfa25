// nn.MultiheadAttention in terms of the library. See torch_call.h.
#include "runtime/base/check.h"
#include "tools/conformance/empty_rows.h"
#include "tools/conformance/torch_call.h"

namespace headway::tools {
namespace {

// [B, S, width] whatever the call's order of axes is.
ConstTensorView batched(const ConstTensorView& view, const char* name, const MhaCall& call, std::int64_t width) {
  require(view.rank() == call.query.rank(), name, " has rank ", view.rank(), ", expected ", call.query.rank(),
          " as query has");
  require(view.dims.back() == width, name, " has width ", view.dims.back(), ", expected ", width);
  if (view.rank() == 2) return with_unit_axis(view, 0);
  return call.batch_first ? view : view.permuted({1, 0, 2});
}

MaskKind kind_of(const ConstTensorView& mask) {
  if (!mask) return MaskKind::kNone;
  return mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

bool same_tensor(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.dims == b.dims && a.strides == b.strides;
}

// [B, Skv]
ConstTensorView padding_mask(const ConstTensorView& mask, bool unbatched, std::int64_t batch, std::int64_t key_len) {
  if (!mask) return mask;
  const Dims expected = unbatched ? Dims{key_len} : Dims{batch, key_len};
  require(mask.dims == expected, "key_padding_mask has shape ", mask.dims, ", expected ", expected);
  return unbatched ? with_unit_axis(mask, 0) : mask;
}

// [Sq, Skv], or [B, H, Sq, Skv] from torch's [B·H, Sq, Skv].
ConstTensorView attention_mask(const ConstTensorView& mask, const MultiHeadAttentionSpec& spec) {
  if (!mask) return mask;
  require(mask.rank() == 2 || mask.rank() == 3, "attn_mask has rank ", mask.rank(), ", expected 2 or 3");
  if (mask.rank() == 2) {
    const Dims expected = {spec.query_len, *spec.key_len};
    require(mask.dims == expected, "attn_mask has shape ", mask.dims, ", expected ", expected);
    return mask;
  }
  const Dims expected = {spec.batch * spec.num_heads, spec.query_len, *spec.key_len};
  require(mask.dims == expected, "attn_mask has shape ", mask.dims, ", expected [B·H, Sq, Skv] = ", expected);
  if (spec.batch == 0) return mask.reshaped({0, spec.num_heads, spec.query_len, *spec.key_len});
  return mask.split_axis(0, spec.batch);
}

void set_variant(const MhaCall& call, MultiHeadAttentionSpec* spec) {
  apply_semantics("torch_mha", call.variant.causal, spec);
  spec->scale = call.variant.scale;
  spec->softcap = call.variant.softcap;
  spec->window = call.variant.window;
  spec->key_lengths = static_cast<bool>(call.key_lengths);
  if (call.variant.weights == WeightsOutput::kMean) spec->scores_output = ScoresOutput::kMeanProbabilities;
  if (call.variant.weights == WeightsOutput::kPerHead) spec->scores_output = ScoresOutput::kProbabilities;
}

// The core's spec and masks, as far as they decide which rows are empty.
void find_rows(const MultiHeadAttentionSpec& spec, const MultiHeadAttentionArgs& args, std::int64_t appended,
               WeightsOutput weights, CallResult* result) {
  AttentionSpec core{spec};
  core.batch = spec.batch;
  core.num_heads = spec.num_heads;
  core.query_len = spec.query_len;
  core.key_len = *spec.key_len + appended;
  core.always_visible_keys = appended;
  AttentionArgs masks;
  masks.mask = args.mask;
  masks.key_mask = args.key_mask;
  masks.key_lengths = args.key_lengths;
  find_empty_rows(core, masks, false, weights, result);
}

}  // namespace

CallResult call_mha(const LayerWeights& weights, const MhaCall& call, const Execution& execution) {
  const std::int64_t kv_heads = call.num_kv_heads ? call.num_kv_heads : call.num_heads;
  check_heads(weights, call.num_heads, kv_heads);
  const int rank = call.query.rank();
  require(rank == 2 || rank == 3, "query has rank ", rank, ", expected 2 or 3");
  const bool unbatched = rank == 2;

  MultiHeadAttentionArgs args;
  args.query = batched(call.query, "query", call, weights.embed_dim);
  args.key = batched(call.key, "key", call, weights.kdim);
  args.value = batched(call.value, "value", call, weights.vdim);

  MultiHeadAttentionSpec spec;
  spec.batch = args.query.dims[0];
  spec.query_len = args.query.dims[1];
  spec.key_len = args.key.dims[1];
  require(args.key.dims[0] == spec.batch, "key has batch ", args.key.dims[0], ", expected ", spec.batch);
  require(args.value.dims[0] == spec.batch, "value has batch ", args.value.dims[0], ", expected ", spec.batch);
  require(args.value.dims[1] == *spec.key_len, "value has length ", args.value.dims[1], ", expected key length ",
          *spec.key_len);
  spec.embed_dim = weights.embed_dim;
  spec.kdim = weights.kdim;
  spec.vdim = weights.vdim;
  spec.num_heads = call.num_heads;
  spec.num_kv_heads = kv_heads;
  spec.head_dim = weights.views.query.dims[0] / call.num_heads;
  spec.value_head_dim = weights.views.value.dims[0] / kv_heads;
  spec.add_zero_attention = call.add_zero_attn;
  spec.self_attention = same_tensor(args.query, args.key) && same_tensor(args.query, args.value);
  set_variant(call, &spec);

  F32Pool pool;
  spec.type = weights.type;
  const auto input = [&](const ConstTensorView& view, const char* name) {
    return pool.of(spec.type, view, name, "the weights are");
  };
  args.query = input(args.query, "query");
  args.key = spec.self_attention ? args.query : input(args.key, "key");
  args.value = spec.self_attention ? args.query : input(args.value, "value");
  args.mask = attention_mask(pool.mask(call.attn_mask, "attn_mask"), spec);
  args.key_mask =
      padding_mask(pool.mask(call.key_padding_mask, "key_padding_mask"), unbatched, spec.batch, *spec.key_len);
  args.key_lengths = call.key_lengths;
  spec.mask = kind_of(args.mask);
  spec.key_mask = kind_of(args.key_mask);

  CallResult result;
  const Dims output_dims = unbatched          ? Dims{spec.query_len, spec.embed_dim}
                           : call.batch_first ? Dims{spec.batch, spec.query_len, spec.embed_dim}
                                              : Dims{spec.query_len, spec.batch, spec.embed_dim};
  result.output = nan_tensor(output_dims, spec.type);
  const TensorView output = result.output.view();
  args.out = unbatched ? with_unit_axis(output, 0) : call.batch_first ? output : output.permuted({1, 0, 2});

  const std::int64_t appended = (weights.views.bias_k ? 1 : 0) + (call.add_zero_attn ? 1 : 0);
  if (call.variant.weights != WeightsOutput::kNone) {
    Dims dims;
    if (!unbatched) dims.push_back(spec.batch);
    if (call.variant.weights == WeightsOutput::kPerHead) dims.push_back(call.num_heads);
    dims.push_back(spec.query_len);
    dims.push_back(*spec.key_len + appended);
    result.has_weights = true;
    result.weights = nan_tensor(dims);
    args.scores = unbatched ? with_unit_axis(result.weights.view(), 0) : result.weights.view();
  }

  const MultiHeadAttention layer(spec, weights.views, execution.attention);
  const AlignedBuffer workspace(layer.workspace_bytes(execution.threads.workers()));
  layer.run(args, workspace.data(), execution.threads);

  result.implementation = layer.core().implementation();
  find_rows(spec, args, appended, call.variant.weights, &result);
  if (!call.batch_first && !unbatched) {
    std::vector<RowState> sequence_first;
    for (std::int64_t i = 0; i < spec.query_len; ++i) {
      for (std::int64_t b = 0; b < spec.batch; ++b) {
        sequence_first.push_back(result.output_rows[static_cast<std::size_t>(b * spec.query_len + i)]);
      }
    }
    result.output_rows = std::move(sequence_first);
  }
  result.empty_output.assign(static_cast<std::size_t>(spec.embed_dim), 0.0f);
  if (weights.views.output_bias) {
    F32Pool values;
    const Tensor bias = packed(values.f32(weights.views.output_bias, "output bias"));
    result.empty_output.assign(bias.data<float>(), bias.data<float>() + bias.count());
  }
  return result;
}

}  // namespace headway::tools
