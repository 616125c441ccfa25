// Exact results and bounds by the double reference; the comparison itself.
#include "tests/support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "headway/numerical_bound.h"
#include "ops/reference/reference_attention.h"
#include "tests/support/strided.h"

namespace headway::testing {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Keys whose exponent is this far below the row's maximum weigh less than one rounding.
constexpr double kNoWeight = 17;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Adds one element to a comparison. `index` is its place in row-major order; `stored` is what the last rounding may
/// change on top of the bound.
void check(const char* tensor, std::int64_t index, double got, double exact, double bound, double stored,
           Comparison* result) {
  if (std::isnan(exact) && std::isnan(got)) return;
  if (std::isinf(exact) && got == exact) return;
  const double difference = std::abs(got - exact);
  const double ratio = difference <= stored ? 0 : (difference - stored) / bound;
  // Written so that a NaN on either side, or in the bound, fails.
  if (!(ratio <= 1) && result->ok()) {
    std::ostringstream text;
    text.precision(9);
    text << tensor << "[" << index << "] is " << got << ", expected " << exact << " within " << bound + stored;
    result->failure = text.str();
  }
  result->worst = std::isnan(ratio) ? kInfinity : std::max(result->worst, ratio);
}

/// Σ|scale·q·k| and the sum itself for one pair.
struct Product {
  double magnitude = 0;
  double sum = 0;
};

Product product(const AttentionSpec& spec, const AttentionArgs& args, const ReferencePair& pair) {
  const std::int64_t g = pair.head / (spec.num_heads / *spec.num_kv_heads);
  const float* q = args.query.as<float>() + offset_of(args.query.strides, pair.batch, pair.head, pair.query, 0);
  const float* k = args.key.as<float>() + offset_of(args.key.strides, pair.batch, g, pair.key, 0);
  Product result;
  for (std::int64_t d = 0; d < spec.head_dim; ++d) {
    const double term = static_cast<double>(*spec.scale) * static_cast<double>(q[d * args.query.strides[3]]) *
                        static_cast<double>(k[d * args.key.strides[3]]);
    result.magnitude += std::abs(term);
    result.sum += term;
  }
  return result;
}

/// M of one row.
double row_magnitude(const AttentionSpec& spec, const AttentionArgs& args, const ReferencePair& row) {
  std::vector<std::pair<double, double>> exponents;  // score plus bias, |bias|
  double of_products = 0;
  double maximum = kMinusInfinity;
  for (std::int64_t j = 0; j < spec.key_len; ++j) {
    const ReferencePair pair{row.batch, row.head, row.query, j};
    const auto bias = static_cast<double>(reference_bias(spec, args, pair));
    if (bias == kMinusInfinity) continue;
    const Product qk = product(spec, args, pair);
    of_products = std::max(of_products, qk.magnitude);
    const auto c = static_cast<double>(spec.softcap);
    exponents.emplace_back((c > 0 ? c * std::tanh(qk.sum / c) : qk.sum) + bias, std::abs(bias));
    maximum = std::max(maximum, exponents.back().first);
  }
  double of_biases = 0;
  for (const auto& [exponent, bias] : exponents) {
    if (exponent >= maximum - kNoWeight) of_biases = std::max(of_biases, bias);
  }
  return of_products + of_biases;
}

double raw_row_magnitude(const AttentionSpec& spec, const AttentionArgs& args, const ReferencePair& row) {
  double result = 0;
  for (std::int64_t j = 0; j < spec.key_len; ++j) {
    result = std::max(result, product(spec, args, {row.batch, row.head, row.query, j}).magnitude);
  }
  return result;
}

/// [v, |v|] along the last axis: one run of the reference then gives Σ p·v and Σ p·|v|.
std::vector<float> with_magnitudes(const ConstTensorView& value) {
  std::vector<float> result;
  result.reserve(size(2 * value.count()));
  const Dims rows{value.dims[0], value.dims[1], value.dims[2], 1};
  each(rows, [&](auto b, auto h, auto j, auto) {
    const float* row = value.as<float>() + offset_of(value.strides, b, h, j, 0);
    for (std::int64_t d = 0; d < value.dims[3]; ++d) result.push_back(row[d * value.strides[3]]);
    for (std::int64_t d = 0; d < value.dims[3]; ++d) result.push_back(std::abs(row[d * value.strides[3]]));
  });
  return result;
}

/// bf16 queries, keys and values as f32, contiguous; f32 ones as they are.
class Widened {
 public:
  explicit Widened(const AttentionArgs& given) : args(given) {
    args.query = widened(given.query, &query_);
    args.key = widened(given.key, &key_);
    args.value = widened(given.value, &value_);
  }
  AttentionArgs args;

 private:
  static ConstTensorView widened(const ConstTensorView& view, std::vector<float>* memory) {
    if (view.type != DataType::kBF16) return view;
    memory->reserve(size(view.count()) + 1);
    each(view.dims, [&](auto b, auto h, auto i, auto d) {
      memory->push_back(read_element(view, offset_of(view.strides, b, h, i, d)));
    });
    memory->push_back(0);
    return view_of(static_cast<const float*>(memory->data()), view.dims);
  }
  std::vector<float> query_, key_, value_;
};

}  // namespace

Expected::Expected(const AttentionSpec& spec, const AttentionArgs& given) : spec_(spec), out_dims_(given.out.dims) {
  const Widened wide(given);
  const AttentionArgs& args = wide.args;
  AttentionSpec doubled = spec;
  doubled.value_head_dim = 2 * *spec.value_head_dim;
  AttentionArgs exact = args;
  std::vector<float> values = with_magnitudes(args.value);
  values.push_back(0);
  exact.value = view_of(static_cast<const float*>(values.data()),
                        Dims{spec.batch, *spec.num_kv_heads, spec.key_len, *doubled.value_head_dim});
  const Dims both{spec.batch, spec.num_heads, spec.query_len, *doubled.value_head_dim};
  std::vector<double> sums(size(element_count(both)) + 1);
  exact.out = view_of(sums.data(), both);
  if (args.scores) {
    scores_.resize(size(args.scores.count()) + 1);
    exact.scores = view_of(scores_.data(), args.scores.dims);
    score_dims_ = args.scores.rank() == 4 ? args.scores.dims : Dims{spec.batch, 1, spec.query_len, spec.key_len};
  }
  const Dims rows{spec.batch, spec.num_heads, spec.query_len};
  log_sum_exp_.resize(size(element_count(rows)) + 1);
  exact.log_sum_exp = view_of(log_sum_exp_.data(), rows);
  reference_attention(doubled, exact);

  each(out_dims_, [&](auto b, auto h, auto i, auto d) {
    const double* row = sums.data() + offset_of(exact.out.strides, b, h, i, 0);
    out_.push_back(row[d]);
    weighted_.push_back(row[*spec.value_head_dim + d]);
  });
  const bool raw = spec.scores_output == ScoresOutput::kScaled || spec.scores_output == ScoresOutput::kSoftcapped;
  each({spec.batch, spec.num_heads, spec.query_len, 1}, [&](auto b, auto h, auto i, auto) {
    magnitude_.push_back(row_magnitude(spec, args, {b, h, i, 0}));
    if (raw) raw_magnitude_.push_back(raw_row_magnitude(spec, args, {b, h, i, 0}));
  });
}

Comparison Expected::compare(const AttentionArgs& args, bool bf16_weights) const {
  Comparison result;
  compare_out(args, bf16_weights, &result);
  if (args.scores) compare_scores(args, &result);
  if (args.log_sum_exp) compare_log_sum_exp(args, bf16_weights, &result);
  return result;
}

void Expected::compare_out(const AttentionArgs& args, bool bf16_weights, Comparison* result) const {
  const bool bf16_out = args.out.type == DataType::kBF16;
  std::int64_t index = 0;
  each(out_dims_, [&](auto b, auto h, auto i, auto d) {
    const auto got = static_cast<double>(read_element(args.out, offset_of(args.out.strides, b, h, i, d)));
    const double magnitude = magnitude_[size(index / out_dims_[3])];
    const double exact = out_[size(index)];
    double bound = numerical_bound::of_out(weighted_[size(index)], magnitude) +
                   numerical_bound::kUnderflow * static_cast<double>(spec_.key_len) * 100;
    if (bf16_weights) bound += numerical_bound::kBf16Rounding * weighted_[size(index)];
    // What was rounded may lie on the other side of a power of two than what is exact.
    const double stored =
        bf16_out ? std::max(numerical_bound::half_bf16_step(exact), numerical_bound::half_bf16_step(got)) : 0;
    check("out", index, got, exact, bound, stored, result);
    ++index;
  });
}

double Expected::score_bound(double exact, double magnitude) const {
  switch (spec_.scores_output) {
    case ScoresOutput::kProbabilities:
    case ScoresOutput::kMeanProbabilities:
      // A hidden key has a weight of exactly 0.
      return exact == 0 ? 0 : numerical_bound::of_out(exact, magnitude) + numerical_bound::kUnderflow;
    default:
      return numerical_bound::kEpsilon * (numerical_bound::kC2 * magnitude + 2 * std::abs(exact)) +
             numerical_bound::kUnderflow;
  }
}

void Expected::compare_scores(const AttentionArgs& args, Comparison* result) const {
  const bool mean = spec_.scores_output == ScoresOutput::kMeanProbabilities;
  const std::vector<double>& magnitudes = raw_magnitude_.empty() ? magnitude_ : raw_magnitude_;
  std::int64_t index = 0;
  each(score_dims_, [&](auto b, auto h, auto i, auto j) {
    const Dims& strides = args.scores.strides;
    const std::int64_t at = mean ? b * strides[0] + i * strides[1] + j * strides[2] : offset_of(strides, b, h, i, j);
    double magnitude = 0;
    for (std::int64_t head = mean ? 0 : h; head < (mean ? spec_.num_heads : h + 1); ++head) {
      magnitude = std::max(magnitude, magnitudes[size((b * spec_.num_heads + head) * spec_.query_len + i)]);
    }
    const double exact = scores_[size(index)];
    check("scores", index, static_cast<double>(args.scores.as<float>()[at]), exact, score_bound(exact, magnitude), 0,
          result);
    ++index;
  });
}

void Expected::compare_log_sum_exp(const AttentionArgs& args, bool bf16_weights, Comparison* result) const {
  const double of_keys = 4 + std::log(std::max(1.0, static_cast<double>(spec_.key_len)));
  std::int64_t index = 0;
  each({spec_.batch, spec_.num_heads, spec_.query_len, 1}, [&](auto b, auto h, auto i, auto) {
    const Dims& strides = args.log_sum_exp.strides;
    const auto got =
        static_cast<double>(args.log_sum_exp.as<float>()[b * strides[0] + h * strides[1] + i * strides[2]]);
    double bound = numerical_bound::kEpsilon * (of_keys + 4 * magnitude_[size(index)]);
    if (bf16_weights) bound += 1e-4;
    check("log_sum_exp", index, got, log_sum_exp_[size(index)], bound, 0, result);
    ++index;
  });
}

double row_entropy(const AttentionSpec& spec, const AttentionArgs& args) {
  AttentionSpec asked = spec;
  asked.scores_output = ScoresOutput::kProbabilities;
  AttentionArgs exact = args;
  std::vector<double> out(size(args.out.count()) + 1);
  exact.out = view_of(out.data(), args.out.dims);
  const Dims dims{spec.batch, spec.num_heads, spec.query_len, spec.key_len};
  std::vector<double> probabilities(size(element_count(dims)) + 1);
  exact.scores = view_of(probabilities.data(), dims);
  reference_attention(asked, exact);
  double total = 0;
  std::int64_t rows = 0;
  each({spec.batch, spec.num_heads, spec.query_len, 1}, [&](auto b, auto h, auto i, auto) {
    const double* p = probabilities.data() + offset_of(exact.scores.strides, b, h, i, 0);
    double entropy = 0;
    std::int64_t visible = 0;
    for (std::int64_t j = 0; j < spec.key_len; ++j) {
      visible += p[j] > 0;
      if (p[j] > 0) entropy -= p[j] * std::log(p[j]);
    }
    if (visible < 2) return;
    total += entropy / std::log(static_cast<double>(visible));
    ++rows;
  });
  return rows > 0 ? total / static_cast<double>(rows) : std::nan("");
}

}  // namespace headway::testing
