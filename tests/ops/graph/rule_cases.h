// A node of each operator that its rule accepts, small enough to be changed at random. Knows no expected results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/operator.h"

namespace headway::testing {

struct RuleInput {
  DataType type = DataType::kF32;
  std::vector<std::int64_t> dims;
  bool constant = false;
  std::vector<std::int64_t> numbers = {};  ///< of a constant list of i64
  bool present = true;
};

struct RuleCase {
  std::string op;
  std::vector<RuleInput> inputs;
  Attributes attributes;
  int outputs = 1;
};

/// One or more of every operator of register_ops().
std::vector<RuleCase> rule_cases();

}  // namespace headway::testing
