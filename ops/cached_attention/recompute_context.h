// Contexts that a hidden NaN or infinity reached, or that overflowed before they were divided: computed once more in
// double, from the keys that the row sees and no others. Knows no tiles.
#pragma once

#include <cstdint>

#include "ops/cached_attention/call.h"

namespace headway {

/// Floats that lie `stride` apart.
template <class Float>
struct Spread {
  Float* first;
  std::int64_t stride;
  Float& operator[](std::int64_t i) const { return first[i * stride]; }
};

/// context of `row` over the keys it sees of `keys`, relative to *maximum, which with *sum is raised where the context
/// would not fit into f32.
void recompute_context(const HeadKeys& keys, const CachedRow& row, const Spread<const float>& query,
                       const Spread<float>& context, float* maximum, float* sum);

}  // namespace headway
