// A product as the numbers and the tensors that are multiplied in it, however the file nests them. Knows no pattern.
#pragma once

#include <optional>
#include <vector>

#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

struct Factors {
  double number = 1;
  std::vector<ValueId> values;
};

/// Takes apart Mul and Div by numbers from `value` down, as long as nobody else reads what is between. A value that is
/// no product is its only factor.
Factors factors_of(const Draft& draft, Facts* facts, ValueId value);

/// True when `number` is `expected` within what numbers of the type can tell.
bool is_about(double number, double expected, std::optional<DataType> type = DataType::kF32);

/// The other operand of a sum of two where one is that number; kNoValue when it is none.
ValueId plus_number(const Draft& draft, Facts* facts, ValueId value, double number);

/// The base of x², written as Pow(x, 2) or Mul(x, x); of x³ as Pow(x, 3) or Mul(x, Mul(x, x)).
ValueId base_of_power(const Draft& draft, Facts* facts, ValueId value, int power);

}  // namespace headway::fusion
