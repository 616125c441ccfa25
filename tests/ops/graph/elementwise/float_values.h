// What tests of elements share.
#pragma once

#include <limits>

#include "headway/tensor.h"

namespace headway::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr DataType kFloats[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16};

}  // namespace headway::testing
