// Arithmetic on dims: printing, counting with overflow refused, row-major strides. Knows neither types nor memory.
#include "headway/tensor.h"
#include "runtime/base/check.h"

namespace headway {

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '[';
  for (int i = 0; i < dims.rank(); ++i) out << (i == 0 ? "" : ", ") << dims[i];
  return out << ']';
}

std::int64_t element_count(const Dims& dims) {
  bool empty = false;
  for (int i = 0; i < dims.rank(); ++i) {
    require(dims[i] >= 0, "axis ", i, " of ", dims, " is ", dims[i], ", expected 0 or more");
    empty = empty || dims[i] == 0;
  }
  if (empty) return 0;
  std::int64_t count = 1;
  for (std::int64_t size : dims) {
    require(!__builtin_mul_overflow(count, size, &count), "the element count of ", dims, " does not fit 63 bits");
  }
  return count;
}

Dims contiguous_strides(const Dims& dims) {
  Dims strides = dims;
  std::int64_t stride = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    require(dims[i] >= 0, "axis ", i, " of ", dims, " is ", dims[i], ", expected 0 or more");
    strides[i] = stride;
    // An empty axis counts as one, so that the outer strides of an empty tensor stay ordinary numbers. The stride
    // beyond the outermost axis is the element count; refusing its overflow here spares every view a second check.
    const std::int64_t size = std::max<std::int64_t>(dims[i], 1);
    require(!__builtin_mul_overflow(stride, size, &stride), "the strides of ", dims, " do not fit 63 bits");
  }
  return strides;
}

}  // namespace headway
