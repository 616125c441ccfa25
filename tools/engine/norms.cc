// A row at a time, two passes; sums in lanes, so that the compiler vectorises them.
#include "tools/engine/norms.h"

#include <algorithm>
#include <cmath>

namespace headway::engine {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kRowsPerTask = 4;

/// Σ term(x[i]).
template <class Term>
float sum_of(const float* x, std::int64_t n, Term term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += term(x[i + l]);
  }
  float sum = 0;
  for (; i < n; ++i) sum += term(x[i]);
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void Norm::run(const float* x, float* y, std::int64_t rows, const Threads& threads) const {
  const auto width = static_cast<std::int64_t>(weight.size());
  const auto one_row = [&](const float* from, float* to) {
    const auto n = static_cast<float>(width);
    const float mean = bias.empty() ? 0 : sum_of(from, width, [](float v) { return v; }) / n;
    const float variance = sum_of(from, width, [mean](float v) { return (v - mean) * (v - mean); }) / n;
    const float factor = 1 / std::sqrt(variance + epsilon);
    const float* const w = weight.data();
    if (bias.empty()) {
      for (std::int64_t i = 0; i < width; ++i) to[i] = from[i] * factor * w[i];
    } else {
      for (std::int64_t i = 0; i < width; ++i)
        to[i] = (from[i] - mean) * factor * w[i] + bias[static_cast<std::size_t>(i)];
    }
  };
  threads.parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task, int) {
    const std::int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (std::int64_t r = task * kRowsPerTask; r < end; ++r) one_row(x + r * width, y + r * width);
  });
}

}  // namespace headway::engine
