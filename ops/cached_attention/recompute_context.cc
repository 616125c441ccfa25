// A plain loop, key by key.
#include "ops/cached_attention/recompute_context.h"

#include <cmath>
#include <numbers>

#include "ops/base/hidden_score.h"
#include "ops/base/numeric.h"

namespace headway {
namespace {

double element(DataType type, const std::byte* row, std::int64_t at) {
  if (type == DataType::kBF16) return widen(reinterpret_cast<const BFloat16*>(row)[at]);
  if (type == DataType::kF16) return widen(reinterpret_cast<const Float16*>(row)[at]);
  return reinterpret_cast<const float*>(row)[at];
}

/// use(its value, exp of its score less `maximum`) for the keys that are not hidden.
template <class Use>
void for_each_prob(const HeadKeys& keys, const CachedRow& row, const Spread<const float>& query, double maximum,
                   Use use) {
  const CachedAttentionSpec& spec = keys.call.spec;
  const KeyRange seen = keys.seen(row);
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    float bias = 0;
    if (keys.call.bias.any()) keys.call.bias.fill(keys.sequence, row.token, row.head, j, 1, &bias);
    if (bias == kHiddenScore) continue;
    const CacheRun at = keys.places.run(j, j + 1);
    const std::byte* const key = keys.key.at(at);
    double score = 0;
    for (std::int64_t c = 0; c < spec.head_dim; ++c) score += double{query[c]} * element(spec.cache_type, key, c);
    if (spec.softcap > 0) score = spec.softcap * std::tanh(score / spec.softcap);
    use(keys.value.at(at), std::exp(score + bias - maximum));
  }
}

}  // namespace

void recompute_context(const HeadKeys& keys, const CachedRow& row, const Spread<const float>& query,
                       const Spread<float>& context, float* maximum, float* sum) {
  const CachedAttentionSpec& spec = keys.call.spec;
  // A power of two by which everything is taken smaller where values near the largest float are added up.
  constexpr int kShift = 40;
  for (int shift = 0; shift <= kShift; shift += kShift) {
    const double highest = *maximum;
    bool fits = true;
    for (std::int64_t c = 0; c < *spec.value_head_dim; ++c) {
      double total = 0;
      for_each_prob(keys, row, query, highest, [&](const std::byte* value, double prob) {
        if (prob != 0) total += prob * element(spec.cache_type, value, c);
      });
      total = std::ldexp(total, -shift);
      context[c] = static_cast<float>(total);
      fits = fits && (std::isfinite(context[c]) || !std::isfinite(total));
    }
    if (shift > 0) {
      *maximum += kShift * std::numbers::ln2_v<float>;
      *sum = std::ldexp(*sum, -kShift);
    }
    if (fits) return;
  }
}

}  // namespace headway
