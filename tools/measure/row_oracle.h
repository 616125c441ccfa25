// A few rows of a random layer's output in double, without computing the others. Knows nothing of how the library
// computes them.
#pragma once

#include <cstdint>

#include "tools/measure/random_layer.h"

namespace headway::tools {

struct RowCheck {
  double worst = 0;  ///< largest |got − exact| over the sampled rows; infinite when any output is not finite
  double bound = 0;
  bool ok() const { return worst <= bound; }
};

/// Looks at every element for finiteness and at a few rows for exactness. Cost: about 4·S·E·(h + E / S) flops per row.
RowCheck check_output(const LayerSizes& sizes, std::int64_t heads, const RandomLayer& random, const Tensor& output,
                      const Threads& threads);

}  // namespace headway::tools
