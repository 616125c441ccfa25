// What an Einsum equation says of given dims: for every label its size and how far each operand and the result move
// with it. Knows no arithmetic and no memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headway/tensor.h"

namespace headway {

struct EinsumLabel {
  std::int64_t size = 1;
  bool in_result = false;
  std::int64_t result_stride = 0;
  std::vector<std::int64_t> strides;  // one an operand; 0 where it does not have the label, or broadcasts it
  std::vector<bool> present;          // one an operand
};

struct EinsumEquation {
  /// Those of the result first, in its order, then the ones that are summed over, in order of first use.
  std::vector<EinsumLabel> labels;
  int result_rank = 0;
  Dims result;
};

/// The labels of each operand's axes and of the result's, as numbers.
struct EinsumNames {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;

  /// Axes of an ellipsis broadcast.
  static bool broadcasts(int name);
};

/// `op` is for messages. Throws kInvalidArgument for an equation that is none, or not one of such operands.
EinsumNames parse_einsum(const char* op, const std::string& equation, std::span<const std::size_t> ranks);

/// Operands and result are contiguous; their dims have been found to fit.
EinsumEquation einsum_equation(const EinsumNames& names, std::span<const Dims> operands);

}  // namespace headway
