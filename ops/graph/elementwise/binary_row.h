// One row of a function of two operands, for any element type. Knows no operator and no traversal.
#pragma once

#include <cstdint>

#include "ops/base/numeric.h"
#include "ops/simd/elementwise.h"

namespace headway {

/// out[i] = f(a[i], b[i]): f sees both in the type that T computes in; its result is converted to Out.
template <class T, class Out, class F>
void binary_row(const BinaryRow& row) {
  const auto* a = static_cast<const T*>(row.a);
  const auto* b = static_cast<const T*>(row.b);
  auto* out = static_cast<Out*>(row.out);
  const auto apply = [](T x, T y) { return convert<Out>(F()(widen(x), widen(y))); };
  // Written out a step at a time, since only loops of known steps are vectorised.
  if (row.a_step == 1 && row.b_step == 1) {
    for (std::int64_t i = 0; i < row.n; ++i) out[i] = apply(a[i], b[i]);
  } else if (row.b_step == 0) {
    const T y = b[0];
    for (std::int64_t i = 0; i < row.n; ++i) out[i] = apply(a[i * row.a_step], y);
  } else {
    const T x = a[0];
    for (std::int64_t i = 0; i < row.n; ++i) out[i] = apply(x, b[i]);
  }
}

}  // namespace headway
