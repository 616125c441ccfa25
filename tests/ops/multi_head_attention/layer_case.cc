// Makes the layer and its double reference.
#include "tests/ops/multi_head_attention/layer_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "headway/numerical_bound.h"
#include "ops/base/numeric.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "ops/reference/reference_mha.h"
#include "tests/ops/multi_head_attention/bf16_bound.h"

namespace headway::testing {
namespace {

// |got − exact| ≤ ε · kLayerBound · Σ_n |Wo[e, n]| · V, with V the largest Σ|x·w| + |b| of a projected value: the error
// of a projected value is a few ε of that sum, the softmax passes it on with weights that add up to 1 and adds its own
// relative error, and the output projection sums both. Errors of the scores reach the weights as absolute errors, a few
// ε times the scores' own condition, which random projections keep within a small factor of V.
constexpr double kLayerBound = 8;
// Scores and probabilities: relative to 1 + |exact|.
constexpr double kScoreBound = 64;

constexpr BFloat16 kPoison{0x7FC5};

double at(const ConstTensorView& view, std::int64_t i) {
  if (view.type == DataType::kBF16) return static_cast<double>(widen(view.as<BFloat16>()[i]));
  return view.type == DataType::kF64 ? view.as<double>()[i] : view.as<float>()[i];
}

/// Offsets of all elements of a view of rank ≤ 4 in row-major order.
template <class Use>
void each_offset(const Dims& dims, const Dims& strides, Use use) {
  const std::int64_t count = element_count(dims);
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n, offset = 0;
    for (int axis = dims.rank() - 1; axis >= 0; --axis) {
      offset += rest % dims[axis] * strides[axis];
      rest /= dims[axis];
    }
    use(n, offset);
  }
}

double ratio_of(double got, double exact, double bound) {
  if (std::isnan(exact) || std::isinf(exact)) {
    const bool same = std::isnan(exact) ? std::isnan(got) : got == exact;
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  const double error = std::abs(got - exact);
  return error <= std::numeric_limits<double>::max() ? error / bound : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string describe(const LayerShape& l) {
  const MultiHeadAttentionSpec& s = l.spec;
  const AttentionRules& a = s;
  std::ostringstream text;
  text << type_name(s.type) << " B " << s.batch << " Sq " << s.query_len << " Skv " << s.key_len.value_or(s.query_len)
       << " E " << s.embed_dim << " kdim " << s.kdim.value_or(s.embed_dim) << " vdim " << s.vdim.value_or(s.embed_dim)
       << " H " << s.num_heads << "/" << s.num_kv_heads.value_or(s.num_heads) << " D " << s.head_dim.value_or(0) << "/"
       << s.value_head_dim.value_or(0) << " self " << s.self_attention << " biases " << l.biases << " bias_kv "
       << l.bias_kv << " zero " << s.add_zero_attention << " seq first " << l.sequence_first << " padded "
       << l.padded_rows << " mask " << static_cast<int>(a.mask) << " rank " << l.mask_rank << " key_mask "
       << static_cast<int>(a.key_mask) << " causal " << static_cast<int>(a.causal) << " window " << a.window.left << ","
       << a.window.right << " lengths " << a.key_lengths << " scores " << static_cast<int>(a.scores_output) << " seed "
       << l.seed;
  return text.str();
}

LayerCase::LayerCase(const LayerShape& shape) : shape_(shape), random_(shape.seed) {
  MultiHeadAttentionSpec& s = shape_.spec;
  s.key_len = s.key_len.value_or(s.query_len);
  s.kdim = s.kdim.value_or(s.embed_dim);
  s.vdim = s.vdim.value_or(s.embed_dim);
  s.num_kv_heads = s.num_kv_heads.value_or(s.num_heads);
  s.head_dim = s.head_dim.value_or(s.embed_dim / s.num_heads);
  s.value_head_dim = s.value_head_dim.value_or(*s.head_dim);
  const std::int64_t q = s.num_heads * *s.head_dim;
  const std::int64_t k = *s.num_kv_heads * *s.head_dim;
  const std::int64_t v = *s.num_kv_heads * *s.value_head_dim;
  const std::int64_t context = s.num_heads * *s.value_head_dim;
  const auto weight = [&](std::int64_t n, std::int64_t depth) {
    return normal({n, depth}, 1.5f / std::sqrt(static_cast<float>(depth)));
  };
  weights_.query = weight(q, s.embed_dim);
  weights_.key = weight(k, *s.kdim);
  weights_.value = weight(v, *s.vdim);
  weights_.output = weight(s.embed_dim, context);
  if (shape_.biases) {
    weights_.query_bias = normal({q}, 0.5f);
    weights_.key_bias = normal({k}, 0.5f);
    weights_.value_bias = normal({v}, 0.5f);
    weights_.output_bias = normal({s.embed_dim}, 0.5f);
  }
  if (shape_.bias_kv) {
    weights_.bias_k = normal({k}, 1);
    weights_.bias_v = normal({v}, 1);
  }
  const auto filled = [&](const TensorView& view) {
    each_offset(view.dims, view.strides, [&](std::int64_t, std::int64_t o) { view.as<float>()[o] = number(1); });
    return ConstTensorView(view);
  };
  inputs_.query = filled(rows(s.query_len, s.embed_dim, shape_.padded_rows, DataType::kF32));
  if (!s.self_attention) {
    inputs_.key = filled(rows(*s.key_len, *s.kdim, false, DataType::kF32));
    inputs_.value = filled(rows(*s.key_len, *s.vdim, false, DataType::kF32));
  }
  Dims mask_dims{s.query_len, *s.key_len};
  if (shape_.mask_rank == 3) mask_dims = {s.num_heads, s.query_len, *s.key_len};
  if (shape_.mask_rank == 4) mask_dims = {s.batch, s.num_heads, s.query_len, *s.key_len};
  inputs_.mask = random_mask(s.mask, mask_dims);
  inputs_.key_mask = random_mask(s.key_mask, {s.batch, *s.key_len});
  if (s.key_lengths) inputs_.key_lengths = view_of(std::as_const(shape_.lengths).data(), {s.batch});
  if (!shape_.offsets.empty()) inputs_.offsets = view_of(std::as_const(shape_.offsets).data(), {s.batch});
  const std::int64_t keys = *s.key_len + (shape_.bias_kv ? 1 : 0) + (s.add_zero_attention ? 1 : 0);
  if (s.scores_output == ScoresOutput::kMeanProbabilities) {
    score_dims_ = {s.batch, s.query_len, keys};
  } else if (s.scores_output != ScoresOutput::kNone) {
    score_dims_ = {s.batch, s.num_heads, s.query_len, keys};
  }
  compute_reference();
  given_weights_ = weights_;
  MultiHeadAttentionWeights& w = given_weights_;
  for (ConstTensorView* view : {&w.query, &w.key, &w.value, &w.output, &w.query_bias, &w.key_bias, &w.value_bias,
                                &w.output_bias, &w.bias_k, &w.bias_v}) {
    *view = given(*view);
  }
  given_inputs_ = inputs_;
  for (ConstTensorView* view : {&given_inputs_.query, &given_inputs_.key, &given_inputs_.value}) *view = given(*view);
}

AttentionSpec LayerCase::core_spec() const { return headway::core_spec(complete_spec(shape_.spec), shape_.bias_kv); }

float* LayerCase::floats(std::size_t count) {
  float_memory_.emplace_back(count + 1, std::numeric_limits<float>::quiet_NaN());
  return float_memory_.back().data();
}

ConstTensorView LayerCase::normal(const Dims& dims, float scale) {
  const auto count = static_cast<std::size_t>(element_count(dims));
  float* data = floats(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = number(scale);
  return view_of(data, dims);
}

float LayerCase::number(float scale) {
  const float value = scale * random_.normal();
  return shape_.spec.type == DataType::kBF16 ? widen(to_bfloat16(value)) : value;
}

ConstTensorView LayerCase::given(const ConstTensorView& view) {
  if (!view || shape_.spec.type == DataType::kF32) return view;
  std::int64_t reach = 1;
  for (int axis = 0; axis < view.rank(); ++axis)
    reach += std::max<std::int64_t>(view.dims[axis] - 1, 0) * view.strides[axis];
  std::vector<BFloat16>& memory = half_memory_.emplace_back(static_cast<std::size_t>(reach), kPoison);
  each_offset(view.dims, view.strides, [&](std::int64_t, std::int64_t o) {
    memory[static_cast<std::size_t>(o)] = to_bfloat16(view.as<float>()[o]);
  });
  return ConstTensorView(reinterpret_cast<const std::byte*>(memory.data()), DataType::kBF16, view.dims, view.strides);
}

TensorView LayerCase::rows(std::int64_t length, std::int64_t width, bool padded, DataType type) {
  const std::int64_t row = width + (padded ? 3 : 0);
  const std::int64_t batch = shape_.spec.batch;
  const auto count = static_cast<std::size_t>(batch * length * row);
  const Dims strides = shape_.sequence_first ? Dims{row, batch * row, 1} : Dims{length * row, row, 1};
  std::byte* data = nullptr;
  if (type == DataType::kBF16) {
    data = reinterpret_cast<std::byte*>(half_memory_.emplace_back(count + 1, kPoison).data());
  } else {
    data = reinterpret_cast<std::byte*>(floats(count));
  }
  return TensorView(data, type, {batch, length, width}, strides);
}

ConstTensorView LayerCase::random_mask(MaskKind kind, const Dims& dims) {
  if (kind == MaskKind::kNone) return {};
  const auto count = static_cast<std::size_t>(element_count(dims));
  if (kind == MaskKind::kAdditive) {
    float* data = floats(count);
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = random_.chance(shape_.hidden) ? -std::numeric_limits<float>::infinity() : random_.normal();
    }
    return view_of(data, dims);
  }
  const bool hides = shape_.spec.mask_polarity == MaskPolarity::kTrueHides;
  byte_memory_.emplace_back(count + 1);
  std::uint8_t* data = byte_memory_.back().data();
  for (std::size_t i = 0; i < count; ++i) data[i] = random_.chance(shape_.hidden) == hides ? 1 : 0;
  return ConstTensorView(reinterpret_cast<const std::byte*>(data), DataType::kBool, dims);
}

void LayerCase::compute_reference() {
  const MultiHeadAttentionSpec& s = shape_.spec;
  MultiHeadAttentionArgs args = inputs_;
  out_.resize(static_cast<std::size_t>(s.batch * s.query_len * s.embed_dim));
  args.out = view_of(out_.data(), {s.batch, s.query_len, s.embed_dim});
  if (score_dims_.rank() > 0) {
    scores_.resize(static_cast<std::size_t>(element_count(score_dims_)));
    args.scores = view_of(scores_.data(), score_dims_);
  }
  reference_multi_head_attention(s, weights_, args);

  const ConstTensorView& x = s.self_attention ? inputs_.query : inputs_.value;
  const ConstTensorView& w = weights_.value;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t j = 0; j < *s.key_len; ++j) {
      for (std::int64_t n = 0; n < w.dims[0]; ++n) {
        double value = weights_.value_bias ? at(weights_.value_bias, n) : 0;
        double sum = std::abs(value);
        for (std::int64_t e = 0; e < *s.vdim; ++e) {
          const double term = at(x, b * x.strides[0] + j * x.strides[1] + e * x.strides[2]) * at(w, n * *s.vdim + e);
          value += term;
          sum += std::abs(term);
        }
        value_magnitude_ = std::max(value_magnitude_, sum);
        largest_value_ = std::max(largest_value_, std::abs(value));
      }
    }
  }
}

double LayerCase::output_bound(std::int64_t e) const {
  double sum = weights_.output_bias ? std::abs(at(weights_.output_bias, e)) : 0;
  double squares = 0;
  for (std::int64_t n = 0; n < weights_.output.dims[1]; ++n) {
    const double weight = at(weights_.output, e * weights_.output.dims[1] + n);
    sum += std::abs(weight) * value_magnitude_;
    squares += weight * weight;
  }
  const double of_f32 = kLayerBound * numerical_bound::kEpsilon * sum;
  if (shape_.spec.type == DataType::kF32) return of_f32;
  return of_f32 + numerical_bound::kBf16Rounding * kBf16LayerBound * std::sqrt(squares) * largest_value_;
}

MultiHeadAttentionArgs LayerCase::args() {
  MultiHeadAttentionArgs args = given_inputs_;
  args.out = rows(shape_.spec.query_len, shape_.spec.embed_dim, shape_.padded_rows, shape_.spec.type);
  if (score_dims_.rank() > 0) {
    args.scores = view_of(floats(static_cast<std::size_t>(element_count(score_dims_))), score_dims_);
  }
  return args;
}

double LayerCase::worst_ratio(const MultiHeadAttentionArgs& computed) const {
  double worst = 0;
  const std::int64_t width = shape_.spec.embed_dim;
  std::vector<double> bounds;
  for (std::int64_t e = 0; e < width; ++e) bounds.push_back(output_bound(e));
  const double of_size = shape_.spec.type == DataType::kBF16 ? numerical_bound::kBf16Rounding : 0;
  each_offset(computed.out.dims, computed.out.strides, [&](std::int64_t n, std::int64_t o) {
    const double exact = out_[static_cast<std::size_t>(n)];
    const double bound = bounds[static_cast<std::size_t>(n % width)] + of_size * std::abs(exact);
    worst = std::max(worst, ratio_of(at(computed.out, o), exact, bound));
  });
  if (score_dims_.rank() == 0) return worst;
  each_offset(computed.scores.dims, computed.scores.strides, [&](std::int64_t n, std::int64_t o) {
    const double exact = scores_[static_cast<std::size_t>(n)];
    const double epsilons =
        kScoreBound * numerical_bound::kEpsilon + (of_size > 0 ? kBf16ScoreBound * numerical_bound::kBf16Rounding : 0);
    worst = std::max(worst, ratio_of(at(computed.scores, o), exact, epsilons * (1 + std::abs(exact))));
  });
  return worst;
}

std::vector<float> LayerCase::values(const TensorView& out) {
  std::vector<float> values;
  each_offset(out.dims, out.strides,
              [&](std::int64_t, std::int64_t o) { values.push_back(static_cast<float>(at(out, o))); });
  return values;
}

}  // namespace headway::testing
