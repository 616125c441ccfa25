// Tensors as a caller of the C API has them.
#pragma once

#include <cstdint>
#include <vector>

#include "headway/headway.h"
#include "headway/tensor.h"
#include "tests/support/random_data.h"

namespace headway::testing {

inline Tensor random_floats(const Dims& dims, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor(DataType::kF32, dims);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = random.normal();
  return tensor;
}

/// A view in DLPack's words; keeps what it points to.
class CTensor {
 public:
  explicit CTensor(const ConstTensorView& view)
      : shape_(view.dims.begin(), view.dims.end()), strides_(view.strides.begin(), view.strides.end()) {
    tensor.data = const_cast<std::byte*>(view.data);
    tensor.device = {1, 0};
    tensor.ndim = view.rank();
    tensor.dtype = {code_of(view.type), static_cast<std::uint8_t>(8 * size_bytes(view.type)), 1};
    tensor.shape = shape_.data();
    tensor.strides = strides_.data();
    tensor.byte_offset = 0;
  }
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  const headway_tensor* get() const { return &tensor; }

  headway_tensor tensor{};

 private:
  static std::uint8_t code_of(DataType type) {
    switch (type) {
      case DataType::kBF16:
        return 4;
      case DataType::kBool:
        return 6;
      case DataType::kU8:
        return 1;
      case DataType::kI8:
      case DataType::kI32:
      case DataType::kI64:
        return 0;
      default:
        return 2;
    }
  }
  std::vector<std::int64_t> shape_, strides_;
};

}  // namespace headway::testing
