// One row normalised in f64, for rows of any float type: what f64 rows are computed by, and f32 rows whose squares
// leave the range of f32. Decides how nothing cancels, overflows or is flushed; knows no tensor and no vector.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headway {

/// T is float or double. `scale` and `bias` have n elements or are null; `y` may be `x`.
template <class T>
struct WideNormRow {
  const T* x;
  T* y;
  const T* scale;
  const T* bias;
  std::int64_t n;
  double epsilon;
};
struct WideMoments {
  double mean = 0;  ///< 0 for the root mean square
  double inverse_std = 0;
};

/// Σ term(i) over [begin, end) by halves: the rounding grows with the logarithm of the length.
template <class Term>
double pairwise_sum(std::int64_t begin, std::int64_t end, Term term) {
  if (end - begin <= 64) {
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += term(i);
    return sum;
  }
  const std::int64_t middle = begin + (end - begin) / 2;
  return pairwise_sum(begin, middle, term) + pairwise_sum(middle, end, term);
}

/// y = (x − mean)·inverse_std·scale + bias, or without the mean for the root mean square. Sums run over differences
/// from x[0], so that a constant row gives exactly 0 before the bias. NaN or infinity anywhere gives NaN everywhere.
template <class T>
WideMoments wide_norm(const WideNormRow<T>& row, bool rms) {
  const auto n = static_cast<double>(row.n);
  const double first = rms ? 0 : static_cast<double>(row.x[0]);
  // The mean as base + rest, of which `base` is as precise as a double is and `rest` what that leaves over.
  double base = first, rest = 0;
  if (!rms) {
    const auto shifted = [&](std::int64_t i) { return static_cast<double>(row.x[i]) - first; };
    // Divided before the sum where the sum could overflow.
    const double part = 0x1p-64;
    double offset = pairwise_sum(0, row.n, shifted) / n;
    if (!std::isfinite(offset)) {
      const auto scaled = [&](std::int64_t i) { return static_cast<double>(row.x[i]) * part - first * part; };
      offset = pairwise_sum(0, row.n, scaled) / n / part;
    }
    base = first + offset;
    rest = offset - (base - first);
    if (!std::isfinite(rest)) rest = 0;
    const auto left = [&](std::int64_t i) { return (static_cast<double>(row.x[i]) - base) - rest; };
    const double more = pairwise_sum(0, row.n, left) / n;
    if (std::isfinite(more)) rest += more;
  }
  const auto centred = [&](std::int64_t i) { return (static_cast<double>(row.x[i]) - base) - rest; };
  double largest = 0;
  for (std::int64_t i = 0; i < row.n; ++i) {
    const double magnitude = std::fabs(centred(i));
    if (!(magnitude <= largest)) largest = magnitude;
  }
  // Squares are taken times a power of two where they would overflow, or vanish beside no epsilon.
  const double unit = largest > 0x1p480 ? 0x1p-600 : largest < 0x1p-480 && row.epsilon < 0x1p-900 ? 0x1p600 : 1;
  const double squares = pairwise_sum(0, row.n, [&](std::int64_t i) {
    const double off = centred(i) * unit;
    return off * off;
  });
  const double root = std::sqrt(squares / n + row.epsilon * unit * unit);
  for (std::int64_t i = 0; i < row.n; ++i) {
    double y = centred(i) * unit / root;
    if (row.scale != nullptr) y *= static_cast<double>(row.scale[i]);
    if (row.bias != nullptr) y += static_cast<double>(row.bias[i]);
    row.y[i] = static_cast<T>(y);
  }
  return {rms ? 0 : base + rest, unit / root};
}

}  // namespace headway
