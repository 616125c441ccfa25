// ONNX's numbers of element types, as the attribute `to` of Cast has them. Knows no operator.
#pragma once

#include <cstdint>
#include <optional>

#include "headway/tensor.h"

namespace headway {

/// nullopt for a number that is none of ours.
inline std::optional<DataType> onnx_type(std::int64_t number) {
  switch (number) {
    case 1:
      return DataType::kF32;
    case 2:
      return DataType::kU8;
    case 3:
      return DataType::kI8;
    case 6:
      return DataType::kI32;
    case 7:
      return DataType::kI64;
    case 9:
      return DataType::kBool;
    case 10:
      return DataType::kF16;
    case 11:
      return DataType::kF64;
    case 16:
      return DataType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace headway
