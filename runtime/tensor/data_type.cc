// Sizes and names of the element types.
#include "headway/tensor.h"

namespace headway {

std::size_t size_bytes(DataType type) {
  switch (type) {
    case DataType::kF64:
    case DataType::kI64:
      return 8;
    case DataType::kF32:
    case DataType::kI32:
      return 4;
    case DataType::kF16:
    case DataType::kBF16:
      return 2;
    case DataType::kI8:
    case DataType::kU8:
    case DataType::kBool:
      return 1;
  }
  return 0;
}

const char* type_name(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "f32";
    case DataType::kF64:
      return "f64";
    case DataType::kF16:
      return "f16";
    case DataType::kBF16:
      return "bf16";
    case DataType::kI8:
      return "i8";
    case DataType::kU8:
      return "u8";
    case DataType::kI32:
      return "i32";
    case DataType::kI64:
      return "i64";
    case DataType::kBool:
      return "bool";
  }
  return "unknown";
}

}  // namespace headway
