// Greedy, or by temperature among the top_k most likely whose probabilities reach top_p.
#include "tools/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace headway::engine {

std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, std::int64_t position) {
  if (sampling.temperature <= 0) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const std::size_t most =
      sampling.top_k > 0 ? std::min(order.size(), static_cast<std::size_t>(sampling.top_k)) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), before);
  order.resize(most);

  std::vector<double> weight(most);
  const double top = logits[static_cast<std::size_t>(order[0])];
  for (std::size_t i = 0; i < most; ++i) {
    weight[i] = std::exp((logits[static_cast<std::size_t>(order[i])] - top) / sampling.temperature);
  }
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < most && (kept == 0 || sum < sampling.top_p * all)) sum += weight[kept++];

  // A generator of its own for every position: no state is kept, so that preemption repeats nothing.
  std::seed_seq seed{static_cast<std::uint32_t>(sampling.seed), static_cast<std::uint32_t>(sampling.seed >> 32),
                     static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32)};
  std::mt19937_64 generator(seed);
  double left = static_cast<double>(generator() >> 11) * 0x1p-53 * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && left >= weight[chosen]) left -= weight[chosen++];
  return order[chosen];
}

}  // namespace headway::engine
