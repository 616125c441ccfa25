// The exact result of a call: keys gathered by their positions, plain loops in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "headway/numerical_bound.h"
#include "ops/base/numeric.h"
#include "tests/ops/cached_attention/cached_case.h"

namespace headway::testing {

double half_step(DataType type, double x) {
  if (type == DataType::kF32) return 0;
  if (type == DataType::kBF16) return numerical_bound::half_bf16_step(x);
  const int exponent = x == 0 || !std::isfinite(x) ? -14 : std::max(std::ilogb(x), -14);
  return std::ldexp(1.0 / (1 << 11), exponent);
}

double CachedCase::bias(std::size_t b, std::int64_t p, std::int64_t head, std::int64_t key) const {
  double bias = mask_at(b, p, key);
  const auto heads = static_cast<std::size_t>(shape_.spec.num_heads), h = static_cast<std::size_t>(head);
  if (shape_.alibi) bias -= double{slopes_[h]} * std::abs(static_cast<double>(p - key));
  if (shape_.relative_bias) {
    const std::int64_t row =
        std::clamp<std::int64_t>(p - key + kRelativeFuture, 0, kRelativePast + kRelativeFuture - 1);
    bias += relative_[static_cast<std::size_t>(row) * heads + h];
  }
  return bias;
}

CachedCase::Exact CachedCase::exact(std::size_t b, std::int64_t token, std::int64_t head) const {
  const CachedAttentionSpec& spec = shape_.spec;
  const CachedSequence& s = shape_.sequences[b];
  const std::int64_t p = s.length - s.tokens + token;
  const std::int64_t kv = head / (spec.num_heads / *spec.num_kv_heads);
  const double scale = spec.scale ? double{*spec.scale} : 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  Exact result{std::vector<double>(static_cast<std::size_t>(*spec.value_head_dim)),
               std::vector<double>(static_cast<std::size_t>(*spec.value_head_dim)),
               0,
               0,
               0,
               true};
  std::vector<double> query;
  for (std::int64_t d = 0; d < spec.head_dim; ++d) query.push_back(query_at(b, p, head, d));
  std::vector<std::pair<std::int64_t, double>> scores;
  double highest = shape_.sinks ? sinks_[static_cast<std::size_t>(head)] : -std::numeric_limits<double>::infinity();
  for (std::int64_t j = oldest(s); j < s.length; ++j) {
    if (spec.causal && j > p) continue;
    if (spec.window.left >= 0 && j < p - spec.window.left) continue;
    if (spec.window.right >= 0 && j > p + spec.window.right) continue;
    const double added = bias(b, p, head, j);
    if (std::isinf(added)) continue;
    double score = 0, magnitude = 0;
    for (std::int64_t d = 0; d < spec.head_dim; ++d) {
      const double term = scale * query[static_cast<std::size_t>(d)] * key_at(b, j, kv, d);
      score += term;
      magnitude += std::abs(term);
    }
    if (spec.softcap > 0) score = spec.softcap * std::tanh(score / spec.softcap);
    scores.emplace_back(j, score + added);
    highest = std::max(highest, score + added);
    result.magnitude = std::max(result.magnitude, magnitude + std::abs(added));
  }
  result.empty = scores.empty();
  result.keys = static_cast<std::int64_t>(scores.size());
  double sum = shape_.sinks ? std::exp(sinks_[static_cast<std::size_t>(head)] - highest) : 0;
  for (const auto& [key, score] : scores) sum += std::exp(score - highest);
  result.log_sum_exp =
      scores.empty() && !shape_.sinks ? -std::numeric_limits<double>::infinity() : highest + std::log(sum);
  for (const auto& [key, score] : scores) {
    const double prob = std::exp(score - highest) / sum;
    for (std::int64_t d = 0; d < *spec.value_head_dim; ++d) {
      const double v = value_at(b, key, kv, d);
      result.out[static_cast<std::size_t>(d)] += prob * v;
      result.weighted[static_cast<std::size_t>(d)] += prob * std::abs(v);
    }
  }
  return result;
}

std::string CachedCase::compare(double* worst) const {
  const CachedAttentionSpec& spec = shape_.spec;
  std::ostringstream failure;
  for (std::size_t b = 0; b < shape_.sequences.size(); ++b) {
    for (std::int64_t i = 0; i < shape_.sequences[b].tokens; ++i) {
      for (std::int64_t h = 0; h < spec.num_heads; ++h) {
        const Exact expected = exact(b, i, h);
        const std::int64_t row = (starts_[b] + i) * spec.num_heads + h;
        const auto complain = [&](double got, double want, double bound, double store, const char* what,
                                  std::int64_t d) {
          const double difference = got == want ? 0 : std::abs(got - want);
          if (difference <= bound + store) {
            if (worst != nullptr && bound > 0) *worst = std::max(*worst, (difference - store) / bound);
            return false;
          }
          failure << what << " of sequence " << b << ", token " << i << ", head " << h << ", column " << d << " is "
                  << got << ", expected " << want << " within " << bound;
          return true;
        };
        for (std::int64_t d = 0; d < *spec.value_head_dim; ++d) {
          const auto at = static_cast<std::size_t>(d);
          const double want = expected.out[at];
          const double bound = numerical_bound::of_out(expected.weighted[at], expected.magnitude) +
                               numerical_bound::kUnderflow * static_cast<double>(expected.keys);
          const double store = half_step(spec.type, want) * 1.01;
          if (complain(cached_element(out_, row * *spec.value_head_dim + d), want, bound, store, "out", d))
            return failure.str();
        }
        const double bound =
            numerical_bound::kEpsilon * (4 + std::log1p(static_cast<double>(expected.keys)) + 4 * expected.magnitude);
        const float got = log_sum_exp_[static_cast<std::size_t>(row)];
        if (complain(got, expected.log_sum_exp, bound, 0, "log_sum_exp", 0)) return failure.str();
      }
    }
  }
  return {};
}

}  // namespace headway::testing
