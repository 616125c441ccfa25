// Comparing a result with what was expected, element by element. Decides what NaN means; knows no operator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headway/tensor.h"
#include "tools/conformance/torch_call.h"

namespace headway::tools {

struct Comparison {
  double worst = 0;                 ///< largest |got − expected|; infinite when an element can never pass
  double largest_expected = 0;      ///< largest finite |expected|
  std::int64_t empty_rows_nan = 0;  ///< rows that are NaN in `expected` and see no key in some head
};

/// `got` is f32 or bf16 and contiguous, `expected` f32, f64 or bf16 of the same dims (throws kInvalidArgument
/// otherwise, with `name`). A NaN in `got` never passes. A NaN in `expected` passes only in a row of which some head
/// sees no key: a result of this library is finite there, and exactly known where no head sees any: `empty_value`,
/// repeated over the row.
struct Comparands {
  const char* name;
  ConstTensorView got;
  ConstTensorView expected;
  std::span<const RowState> rows;      ///< one for each innermost row
  std::span<const float> empty_value;  ///< of a row's width, or empty for 0
};
Comparison compare(const Comparands& comparands);

}  // namespace headway::tools
