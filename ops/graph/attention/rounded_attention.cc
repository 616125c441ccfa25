// One row at a time: scores, softcap, bias, softmax, weighted sum, with a rounding after each.
#include "ops/graph/attention/rounded_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/bias.h"
#include "ops/attention/visibility.h"
#include "ops/base/narrow.h"

namespace headway {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// Softmax over a row in place; all zeros when every entry is hidden.
void softmax(DataType type, float* row, std::int64_t n) {
  float maximum = kHidden;
  bool has_nan = false;
  for (std::int64_t j = 0; j < n; ++j) {
    row[j] = rounded(type, row[j]);
    has_nan |= std::isnan(row[j]);
    maximum = std::max(maximum, row[j]);
  }
  if (maximum == kHidden && !has_nan) return std::fill(row, row + n, 0.0f);
  float sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    row[j] = rounded(type, std::exp(rounded(type, row[j] - maximum)));
    // bf16 is summed in bf16, f16 in f32: so do the libraries that the expected data comes from.
    sum = type == DataType::kBF16 ? rounded(type, sum + row[j]) : sum + row[j];
  }
  sum = rounded(type, sum);
  for (std::int64_t j = 0; j < n; ++j) row[j] = rounded(type, row[j] / sum);
}

const float* at(const ConstTensorView& view, std::int64_t b, std::int64_t h, std::int64_t i) {
  return view.as<float>() + b * view.strides[0] + h * view.strides[1] + i * view.strides[2];
}

void write_scores(const RoundedSpec& spec, const AttentionArgs& args, const float* row, float* to) {
  for (std::int64_t j = 0; j < spec.core.key_len; ++j) to[j * args.scores.strides[3]] = rounded(spec.type, row[j]);
}

}  // namespace

float rounded_scale(const RoundedSpec& spec) {
  return rounded(spec.type, static_cast<float>(std::sqrt(static_cast<double>(*spec.core.scale))));
}

std::int64_t rounded_scratch_floats(const RoundedSpec& spec) { return 2 * spec.core.key_len; }

void rounded_attention_row(const RoundedSpec& spec, const AttentionArgs& args, std::int64_t batch, std::int64_t head,
                           std::int64_t row, float* scratch) {
  const AttentionSpec& core = spec.core;
  const std::int64_t n = core.key_len;
  const std::int64_t kv_head = head / (core.num_heads / *core.num_kv_heads);
  float* const scores = scratch;
  float* const bias = scratch + n;

  const float* const q = at(args.query, batch, head, row);
  for (std::int64_t j = 0; j < n; ++j) {
    const float* const k = at(args.key, batch, kv_head, j);
    float sum = 0;
    for (std::int64_t d = 0; d < core.head_dim; ++d) sum += q[d * args.query.strides[3]] * k[d * args.key.strides[3]];
    scores[j] = rounded(spec.type, sum);
  }
  float* const wanted = args.scores ? args.scores.as<float>() + batch * args.scores.strides[0] +
                                          head * args.scores.strides[1] + row * args.scores.strides[2]
                                    : nullptr;
  if (core.scores_output == ScoresOutput::kScaled) write_scores(spec, args, scores, wanted);
  if (core.softcap > 0) {
    for (std::int64_t j = 0; j < n; ++j) {
      const float capped = rounded(spec.type, std::tanh(rounded(spec.type, scores[j] / core.softcap)));
      scores[j] = rounded(spec.type, capped * core.softcap);
    }
  }
  if (core.scores_output == ScoresOutput::kSoftcapped) write_scores(spec, args, scores, wanted);

  BiasSource(core, args).fill(batch, head, row, 1, 0, n, bias, n);
  const KeyRange visible = Visibility(core, args, batch).row(row);
  for (std::int64_t j = 0; j < n; ++j) {
    const bool hidden = j < visible.begin || j >= visible.end || bias[j] == kHidden;
    scores[j] = hidden ? kHidden : rounded(spec.type, scores[j] + rounded(spec.type, bias[j]));
  }
  if (core.scores_output == ScoresOutput::kBiased) write_scores(spec, args, scores, wanted);
  softmax(spec.softmax_type, scores, n);
  if (core.scores_output == ScoresOutput::kProbabilities) write_scores(spec, args, scores, wanted);

  const Dims& strides = args.out.strides;
  float* const out = args.out.as<float>() + batch * strides[0] + head * strides[1] + row * strides[2];
  for (std::int64_t d = 0; d < *core.value_head_dim; ++d) {
    float sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      // By selection: the value of a key of no weight may hold anything.
      if (scores[j] != 0) sum += scores[j] * at(args.value, batch, kv_head, j)[d * args.value.strides[3]];
    }
    out[d * strides[3]] = rounded(spec.type, sum);
  }
}

}  // namespace headway
