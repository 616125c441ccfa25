// Comparing tensors of any type as numbers, element by element. Knows nothing of attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway::tools {

struct ValueComparison {
  double worst = 0;             ///< largest |got − expected|; infinite when an element can never pass
  double largest_expected = 0;  ///< largest finite |expected|
  double worst_over_bound = 0;  ///< largest |got − expected| / (absolute + relative · |expected|)
  /// Relative to the largest entry, so that small entries between large ones do not ask for more digits than there are.
  double relative() const { return worst == 0 ? 0 : largest_expected == 0 ? worst : worst / largest_expected; }
};

struct ValueBound {
  double relative = 1e-3;
  double absolute = 1e-7;
};

/// Equal non-finite elements, NaN among them, pass; others never do. Types must be equal, except that f64 may stand for
/// f32; throws kInvalidArgument, with `name`, for those and for dims that differ.
ValueComparison compare_values(const std::string& name, const ConstTensorView& got, const ConstTensorView& expected,
                               const ValueBound& bound = {});

/// Elements as double, in row-major order; any type.
std::vector<double> values_of(const ConstTensorView& view);

}  // namespace headway::tools
