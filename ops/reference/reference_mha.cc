// Projects, appends, attends and projects back in double, holding every intermediate whole. Knows no masks: those go
// to the attention reference as they are.
#include "ops/reference/reference_mha.h"

#include <vector>

#include "ops/reference/reference_attention.h"

namespace headway {
namespace {

/// A contiguous tensor of doubles.
struct Doubles {
  explicit Doubles(const Dims& d) : dims(d), values(static_cast<std::size_t>(element_count(d))) {}
  TensorView view() { return view_of(values.data(), dims); }
  Dims dims;
  std::vector<double> values;
};

double load(const ConstTensorView& view, std::int64_t at) {
  return view.type == DataType::kF64 ? view.as<double>()[at] : static_cast<double>(view.as<float>()[at]);
}

void store(const TensorView& view, std::int64_t at, double value) {
  if (view.type == DataType::kF64) {
    view.as<double>()[at] = value;
  } else {
    view.as<float>()[at] = static_cast<float>(value);
  }
}

/// y[b, s, n] = Σ_k x[b, s, k]·w[n, k] + bias[n], for all s of x [B, S, K]; y [B, ≥ S, N] may have more rows.
void project(const ConstTensorView& x, const ConstTensorView& w, const ConstTensorView& bias, const TensorView& y) {
  std::vector<double> row(static_cast<std::size_t>(x.dims[2]));
  for (std::int64_t b = 0; b < x.dims[0]; ++b) {
    for (std::int64_t s = 0; s < x.dims[1]; ++s) {
      for (std::int64_t k = 0; k < x.dims[2]; ++k) {
        row[static_cast<std::size_t>(k)] = load(x, b * x.strides[0] + s * x.strides[1] + k * x.strides[2]);
      }
      for (std::int64_t n = 0; n < w.dims[0]; ++n) {
        double sum = bias ? load(bias, n * bias.strides[0]) : 0.0;
        for (std::int64_t k = 0; k < x.dims[2]; ++k) {
          sum += row[static_cast<std::size_t>(k)] * load(w, n * w.strides[0] + k * w.strides[1]);
        }
        store(y, b * y.strides[0] + s * y.strides[1] + n * y.strides[2], sum);
      }
    }
  }
}

/// Writes `bias` [N] at position s of every batch entry of y [B, S, N].
void append(const ConstTensorView& bias, std::int64_t s, const TensorView& y) {
  for (std::int64_t b = 0; b < y.dims[0]; ++b) {
    for (std::int64_t n = 0; n < y.dims[2]; ++n) {
      store(y, b * y.strides[0] + s * y.strides[1] + n * y.strides[2], load(bias, n * bias.strides[0]));
    }
  }
}

/// [B, S, H·D] seen as [B, H, S, D].
TensorView heads_of(const TensorView& x, std::int64_t heads) { return x.split_axis(2, heads).permuted({0, 2, 1, 3}); }

MultiHeadAttentionSpec with_defaults(MultiHeadAttentionSpec spec) {
  spec.key_len = spec.key_len.value_or(spec.query_len);
  spec.num_kv_heads = spec.num_kv_heads.value_or(spec.num_heads);
  spec.head_dim = spec.head_dim.value_or(spec.embed_dim / spec.num_heads);
  spec.value_head_dim = spec.value_head_dim.value_or(*spec.head_dim);
  return spec;
}

}  // namespace

void reference_multi_head_attention(const MultiHeadAttentionSpec& given, const MultiHeadAttentionWeights& weights,
                                    const MultiHeadAttentionArgs& args) {
  const MultiHeadAttentionSpec spec = with_defaults(given);
  const ConstTensorView& key_in = spec.self_attention ? args.query : args.key;
  const ConstTensorView& value_in = spec.self_attention ? args.query : args.value;
  const std::int64_t appended = (weights.bias_k ? 1 : 0) + (spec.add_zero_attention ? 1 : 0);
  const std::int64_t keys = *spec.key_len + appended;

  Doubles q({spec.batch, spec.query_len, spec.num_heads * *spec.head_dim});
  Doubles k({spec.batch, keys, *spec.num_kv_heads * *spec.head_dim});  // zeros are what zero attention appends
  Doubles v({spec.batch, keys, *spec.num_kv_heads * *spec.value_head_dim});
  Doubles context({spec.batch, spec.query_len, spec.num_heads * *spec.value_head_dim});
  project(args.query, weights.query, weights.query_bias, q.view());
  project(key_in, weights.key, weights.key_bias, k.view());
  project(value_in, weights.value, weights.value_bias, v.view());
  if (weights.bias_k) {
    append(weights.bias_k, *spec.key_len, k.view());
    append(weights.bias_v, *spec.key_len, v.view());
  }

  AttentionSpec core{spec};
  core.batch = spec.batch;
  core.num_heads = spec.num_heads;
  core.num_kv_heads = *spec.num_kv_heads;
  core.query_len = spec.query_len;
  core.key_len = keys;
  core.head_dim = *spec.head_dim;
  core.value_head_dim = *spec.value_head_dim;
  core.always_visible_keys = appended;
  AttentionArgs core_args;
  core_args.query = heads_of(q.view(), spec.num_heads);
  core_args.key = heads_of(k.view(), *spec.num_kv_heads);
  core_args.value = heads_of(v.view(), *spec.num_kv_heads);
  core_args.mask = args.mask;
  core_args.key_mask = args.key_mask;
  core_args.key_lengths = args.key_lengths;
  core_args.offsets = args.offsets;
  core_args.out = heads_of(context.view(), spec.num_heads);
  core_args.scores = args.scores;
  reference_attention(core, core_args);
  project(context.view(), weights.output, weights.output_bias, args.out);
}

}  // namespace headway
