// c = a·b in any element type by plain loops: f64 and integers, which no library call of ours knows. Knows no operator.
#pragma once

#include <algorithm>

#include "ops/base/numeric.h"
#include "ops/graph/products/product.h"

namespace headway {

/// Integers wrap around: they are multiplied and added as unsigned numbers. Halves are summed in f32.
template <class T>
void plain_product(const ProductSpec& s, const T* a, const T* b, T* c, const Threads& threads) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, ComputeType<T>>;
  const auto at = [](T x) { return static_cast<Sum>(widen(x)); };
  threads.parallel_for(element_count(s.batch) * s.m, [&](std::int64_t task, int) {
    const std::int64_t batch = task / s.m;
    const T* row = a + batch_offset(s.batch, s.a_batch, s.m * s.k, batch) + task % s.m * s.k;
    const T* matrix = b + batch_offset(s.batch, s.b_batch, s.k * s.n, batch);
    const std::int64_t step_k = s.transpose_b ? 1 : s.n;
    const std::int64_t step_n = s.transpose_b ? s.k : 1;
    T* out = c + task * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) {
      Sum sum{};
      for (std::int64_t k = 0; k < s.k; ++k) sum += at(row[k]) * at(matrix[k * step_k + j * step_n]);
      out[j] = convert<T>(sum);
    }
  });
}

}  // namespace headway
