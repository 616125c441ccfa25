// Strided loops over the conversions of ops/base/numeric.h.
#include "ops/base/narrow.h"

#include "ops/base/numeric.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

template <class From, class To>
void convert_axis(const ConstTensorView& from, const TensorView& to, int axis, std::int64_t at, std::int64_t to_at) {
  if (axis == from.rank()) {
    reinterpret_cast<To*>(to.data)[to_at] = convert<To>(reinterpret_cast<const From*>(from.data)[at]);
    return;
  }
  for (std::int64_t i = 0; i < from.dims[axis]; ++i) {
    convert_axis<From, To>(from, to, axis + 1, at + i * from.strides[axis], to_at + i * to.strides[axis]);
  }
}

}  // namespace

float rounded(DataType type, float value) {
  if (type == DataType::kF16) return widen(to_float16(value));
  if (type == DataType::kBF16) return widen(to_bfloat16(value));
  return value;
}

void convert_view(const ConstTensorView& from, const TensorView& to) {
  require(from.dims == to.dims, "conversion has dims ", from.dims, " and ", to.dims, ", expected the same");
  require(is_float(from.type) && is_float(to.type), "conversion from ", type_name(from.type), " to ",
          type_name(to.type), ", expected float types");
  visit_type(from.type, [&](auto source) {
    visit_type(to.type, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      if constexpr (kIsFloat<From> && kIsFloat<To>) convert_axis<From, To>(from, to, 0, 0, 0);
    });
  });
}

}  // namespace headway
