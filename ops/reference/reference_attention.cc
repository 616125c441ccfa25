// The formula in double: scores, softcap, bias, softmax, weighted sum; two passes over the keys instead of a row of
// scores in memory, so that it needs none. Knows no tiles and no threads.
#include "ops/reference/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/numeric.h"

namespace headway {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
/// Columns of the value that are summed in one pass over the keys: 8 KiB of stack.
constexpr std::int64_t kValueColumns = 1024;

void store(const TensorView& view, std::int64_t at, double value) {
  if (view.type == DataType::kF64) {
    view.as<double>()[at] = value;
  } else if (view.type == DataType::kBF16) {
    view.as<BFloat16>()[at] = convert<BFloat16>(value);
  } else {
    view.as<float>()[at] = static_cast<float>(value);
  }
}

double load(const TensorView& view, std::int64_t at) {
  return view.type == DataType::kF64 ? view.as<double>()[at] : view.as<float>()[at];
}

/// One query row of one head. `Real` is the element type of query, key and value.
template <class Real>
class Row {
 public:
  Row(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t b, std::int64_t h, std::int64_t i)
      : spec_(spec), args_(args), b_(b), h_(h), i_(i) {
    const std::int64_t kv_heads = spec.num_kv_heads.value_or(spec.num_heads);
    const std::int64_t g = h / (spec.num_heads / kv_heads);
    q_ = args.query.as<Real>() + b * args.query.strides[0] + h * args.query.strides[1] + i * args.query.strides[2];
    k_ = args.key.as<Real>() + b * args.key.strides[0] + g * args.key.strides[1];
    v_ = args.value.as<Real>() + b * args.value.strides[0] + g * args.value.strides[1];
    scale_ = spec.scale ? static_cast<double>(*spec.scale) : 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  }

  std::int64_t run() {
    std::int64_t visible = 0;
    maximum_ = kMinusInfinity;
    for (std::int64_t j = 0; j < spec_.key_len; ++j) {
      const double b = bias(j);
      if (b == kMinusInfinity) continue;
      ++visible;
      maximum_ = std::max(maximum_, score(j) + b);
    }
    sum_ = 0;
    for (std::int64_t begin = 0; begin < args_.value.dims[3]; begin += kValueColumns) {
      write_columns(begin, std::min(begin + kValueColumns, args_.value.dims[3]), visible == 0);
    }
    write_scores(visible == 0);
    write_log_sum_exp(visible == 0);
    return visible;
  }

 private:
  double bias(std::int64_t j) const { return reference_bias(spec_, args_, {b_, h_, i_, j}); }

  double scaled(std::int64_t j) const {
    const Real* k = k_ + j * args_.key.strides[2];
    double sum = 0;
    for (std::int64_t d = 0; d < spec_.head_dim; ++d) {
      sum += scale_ * static_cast<double>(widen(q_[d * args_.query.strides[3]])) *
             static_cast<double>(widen(k[d * args_.key.strides[3]]));
    }
    return sum;
  }
  double softcapped(double s) const {
    const double c = static_cast<double>(spec_.softcap);
    return c > 0 ? c * std::tanh(s / c) : s;
  }
  double score(std::int64_t j) const { return softcapped(scaled(j)); }
  /// Unnormalised probability. std::max ignores a NaN score; here it makes the sum NaN, as it must.
  double exp_score(std::int64_t j, double b) const { return std::exp(score(j) + b - maximum_); }

  double empty_value() const { return spec_.empty_row == EmptyRow::kZero || spec_.key_len == 0 ? 0.0 : std::nan(""); }

  void write_columns(std::int64_t begin, std::int64_t end, bool empty) {
    double sums[kValueColumns] = {};
    double total = 0;
    for (std::int64_t j = 0; j < spec_.key_len && !empty; ++j) {
      const double b = bias(j);
      if (b == kMinusInfinity) continue;
      const double e = exp_score(j, b);
      total += e;
      const Real* v = v_ + j * args_.value.strides[2];
      for (std::int64_t d = begin; d < end; ++d) {
        sums[d - begin] += e * static_cast<double>(widen(v[d * args_.value.strides[3]]));
      }
    }
    const Dims& strides = args_.out.strides;
    const std::int64_t row = b_ * strides[0] + h_ * strides[1] + i_ * strides[2];
    for (std::int64_t d = begin; d < end; ++d) {
      store(args_.out, row + d * strides[3], empty ? empty_value() : sums[d - begin] / total);
    }
    sum_ = total;
  }

  /// Sum of the exps, also when there is no value column that they were summed for.
  double sum_of_exps() const {
    if (args_.value.dims[3] > 0) return sum_;
    double total = 0;
    for (std::int64_t j = 0; j < spec_.key_len; ++j) {
      if (const double b = bias(j); b != kMinusInfinity) total += exp_score(j, b);
    }
    return total;
  }

  void write_scores(bool empty) const {
    const ScoresOutput mode = spec_.scores_output;
    if (mode == ScoresOutput::kNone) return;
    const bool mean = mode == ScoresOutput::kMeanProbabilities;
    const bool raw = mode == ScoresOutput::kScaled || mode == ScoresOutput::kSoftcapped;
    const Dims& strides = args_.scores.strides;
    const std::int64_t row =
        mean ? b_ * strides[0] + i_ * strides[1] : b_ * strides[0] + h_ * strides[1] + i_ * strides[2];
    const std::int64_t step = strides[mean ? 2 : 3];
    const double total = raw || empty ? 1.0 : sum_of_exps();
    for (std::int64_t j = 0; j < spec_.key_len; ++j) {
      const std::int64_t at = row + j * step;
      const double b = raw ? 0.0 : bias(j);
      const bool hidden = b == kMinusInfinity;
      switch (mode) {
        case ScoresOutput::kScaled:
          store(args_.scores, at, scaled(j));
          break;
        case ScoresOutput::kSoftcapped:
          store(args_.scores, at, score(j));
          break;
        case ScoresOutput::kBiased:
          store(args_.scores, at, hidden ? kMinusInfinity : score(j) + b);
          break;
        default: {
          const double p = empty ? empty_value() : hidden ? 0.0 : exp_score(j, b) / total;
          store(args_.scores, at, mean ? load(args_.scores, at) + p / static_cast<double>(spec_.num_heads) : p);
        }
      }
    }
  }

  void write_log_sum_exp(bool empty) const {
    if (!args_.log_sum_exp) return;
    const Dims& strides = args_.log_sum_exp.strides;
    const double value = empty ? kMinusInfinity : maximum_ + std::log(sum_of_exps());
    store(args_.log_sum_exp, b_ * strides[0] + h_ * strides[1] + i_ * strides[2], value);
  }

  const AttentionSpec& spec_;
  const AttentionArgs& args_;
  std::int64_t b_, h_, i_;
  const Real* q_;
  const Real* k_;
  const Real* v_;
  double scale_ = 1;
  double maximum_ = kMinusInfinity;
  double sum_ = 0;
};

}  // namespace

std::int64_t reference_attention_rows(const AttentionSpec& spec, const AttentionArgs& args, const ReferenceRows& rows) {
  std::int64_t visible = 0;
  for (std::int64_t i = rows.query_begin; i < rows.query_end; ++i) {
    switch (args.query.type) {
      case DataType::kF64:
        visible += Row<double>(spec, args, rows.batch, rows.head, i).run();
        break;
      case DataType::kBF16:
        visible += Row<BFloat16>(spec, args, rows.batch, rows.head, i).run();
        break;
      default:
        visible += Row<float>(spec, args, rows.batch, rows.head, i).run();
    }
  }
  return visible;
}

void reference_attention(const AttentionSpec& spec, const AttentionArgs& args) {
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    if (spec.scores_output == ScoresOutput::kMeanProbabilities) {
      for (std::int64_t i = 0; i < spec.query_len; ++i) {
        for (std::int64_t j = 0; j < spec.key_len; ++j) {
          const Dims& strides = args.scores.strides;
          store(args.scores, b * strides[0] + i * strides[1] + j * strides[2], 0.0);
        }
      }
    }
    for (std::int64_t h = 0; h < spec.num_heads; ++h) reference_attention_rows(spec, args, {b, h, 0, spec.query_len});
  }
}

}  // namespace headway
