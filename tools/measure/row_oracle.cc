// Sampled rows in double. Keys and values are never projected: with q·(W_k x + b_k) = (W_kᵀ q)·x + q·b_k, and the same
// for values, a head costs S·E however many rows there are. See row_oracle.h.
#include "tools/measure/row_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

using Row = std::vector<double>;

// Four sums at once: one would wait for each addition.
double dot(const double* a, const float* b, std::int64_t n) {
  double sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int j = 0; j < 4; ++j) sums[j] += a[i + j] * static_cast<double>(b[i + j]);
  }
  for (; i < n; ++i) sums[0] += a[i] * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void add_scaled(double factor, const float* x, std::int64_t n, double* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += factor * static_cast<double>(x[i]);
}

struct Problem {
  std::int64_t embed_dim, seq, heads;
  bool causal;
  const float* weight;  // [3E, E]
  const float* bias;    // [3E]
  const float* x;       // [S, E] of one batch entry
};

// The concatenated heads' slice of head `h` for query row `i`: D numbers at out.
void attend_head(const Problem& p, std::int64_t h, std::int64_t i, double* out) {
  const std::int64_t width = p.embed_dim, head_dim = width / p.heads;
  const std::int64_t keys = p.causal ? i + 1 : p.seq;
  Row input(p.x + i * width, p.x + (i + 1) * width);
  Row direction(static_cast<std::size_t>(width), 0.0);  // W_kᵀ q
  double offset = 0;                                    // q·b_k
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const std::int64_t row = h * head_dim + d;
    const double q = dot(input.data(), p.weight + row * width, width) + static_cast<double>(p.bias[row]);
    add_scaled(q, p.weight + (width + row) * width, width, direction.data());
    offset += q * static_cast<double>(p.bias[width + row]);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  Row scores(static_cast<std::size_t>(keys));
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    double& score = scores[static_cast<std::size_t>(j)];
    score = scale * (dot(direction.data(), p.x + j * width, width) + offset);
    highest = std::max(highest, score);
  }
  for (double& score : scores) sum += score = std::exp(score - highest);
  Row mixed(static_cast<std::size_t>(width), 0.0);  // Σ p·x
  for (std::int64_t j = 0; j < keys; ++j) {
    add_scaled(scores[static_cast<std::size_t>(j)] / sum, p.x + j * width, width, mixed.data());
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const std::int64_t row = 2 * width + h * head_dim + d;
    out[d] = dot(mixed.data(), p.weight + row * width, width) + static_cast<double>(p.bias[row]);
  }
}

}  // namespace

RowCheck check_output(const LayerSizes& sizes, std::int64_t heads, const RandomLayer& random, const Tensor& output,
                      const Threads& threads) {
  RowCheck check;
  F32Pool pool;
  const ConstTensorView widened = pool.f32(output.view(), "output");
  const float* got = widened.as<float>();
  // Sums of E terms in f32 err by some multiple of √E roundings; bf16 rounds five intermediates to 8 bits besides.
  const double epsilon = std::numeric_limits<float>::epsilon();
  const double relative = std::max(output.type() == DataType::kBF16 ? 1.0 / 64 : 1e-5,
                                   4 * epsilon * std::sqrt(static_cast<double>(sizes.embed_dim)));
  if (!std::all_of(got, got + output.count(), [](float value) { return std::isfinite(value); })) {
    check.worst = std::numeric_limits<double>::infinity();
    check.bound = relative;
    return check;
  }
  const std::int64_t width = sizes.embed_dim, seq = sizes.seq, head_dim = width / heads;
  const std::int64_t b = sizes.batch - 1;
  const Problem problem = {width,
                           seq,
                           heads,
                           sizes.causal,
                           random.in_proj_weight.data<float>(),
                           random.in_proj_bias.data<float>(),
                           random.input.data<float>() + b * seq * width};
  double largest = 1;
  // The last row sees every key, causal or not; the middle one is where a wrong diagonal shows.
  for (const std::int64_t i : {seq / 2, seq - 1}) {
    Row context(static_cast<std::size_t>(width)), errors(static_cast<std::size_t>(width)), exact = errors;
    threads.parallel_for(heads,
                         [&](std::int64_t h, int) { attend_head(problem, h, i, context.data() + h * head_dim); });
    threads.parallel_for(width, [&](std::int64_t e, int) {
      const double value = dot(context.data(), random.out_weight.data<float>() + e * width, width) +
                           static_cast<double>(random.out_bias.data<float>()[e]);
      exact[static_cast<std::size_t>(e)] = std::abs(value);
      errors[static_cast<std::size_t>(e)] = std::abs(static_cast<double>(got[(b * seq + i) * width + e]) - value);
    });
    check.worst = std::max(check.worst, *std::max_element(errors.begin(), errors.end()));
    largest = std::max(largest, *std::max_element(exact.begin(), exact.end()));
  }
  check.bound = relative * largest;
  return check;
}

}  // namespace headway::tools
