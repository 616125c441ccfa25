// Small help with tensors. See tensors.h.
#include "tools/model/tensors.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <utility>

#include "ops/base/numeric.h"
#include "runtime/base/check.h"

namespace headway::tools {
namespace {

template <class T>
Tensor converted(const ConstTensorView& view) {
  const Tensor source = packed(view);
  Tensor out(DataType::kF32, view.dims);
  if (out.count() == 0) return out;
  std::transform(source.data<T>(), source.data<T>() + out.count(), out.data<float>(),
                 [](T value) { return static_cast<float>(widen(value)); });
  return out;
}

template <class View>
View unit_axis(View view, int axis) {
  const View old = view;
  view.dims = Dims();
  view.strides = Dims();
  for (int i = 0; i <= old.rank(); ++i) {
    if (i == axis) {
      view.dims.push_back(1);
      view.strides.push_back(i < old.rank() ? old.dims[i] * old.strides[i] : 1);
    }
    if (i < old.rank()) {
      view.dims.push_back(old.dims[i]);
      view.strides.push_back(old.strides[i]);
    }
  }
  return view;
}

}  // namespace

DataType compute_type(DataType type) { return type == DataType::kBF16 ? DataType::kBF16 : DataType::kF32; }

ConstTensorView F32Pool::of(DataType type, const ConstTensorView& view, const std::string& name,
                            const std::string& leader) {
  if (!view) return view;
  require(compute_type(view.type) == type, name, " is ", headway::type_name(view.type), ", expected ",
          headway::type_name(type), " as ", leader);
  return type == DataType::kBF16 ? view : f32(view, name);
}

ConstTensorView F32Pool::f32(const ConstTensorView& view, const std::string& name) {
  if (!view || view.type == DataType::kF32) return view;
  switch (view.type) {
    case DataType::kF64:
      owned_.push_back(converted<double>(view));
      break;
    case DataType::kF16:
      owned_.push_back(converted<Float16>(view));
      break;
    case DataType::kBF16:
      owned_.push_back(converted<BFloat16>(view));
      break;
    default:
      fail(ErrorCode::kInvalidArgument, name, " is ", headway::type_name(view.type), ", expected f32");
  }
  return std::as_const(owned_.back()).view();
}

ConstTensorView F32Pool::mask(const ConstTensorView& view, const std::string& name) {
  if (!view || view.type == DataType::kBool) return view;
  const bool real = view.type == DataType::kF32 || view.type == DataType::kF64 || view.type == DataType::kF16 ||
                    view.type == DataType::kBF16;
  require(real, name, " is ", headway::type_name(view.type), ", expected bool or f32");
  return f32(view, name);
}

ConstTensorView with_unit_axis(const ConstTensorView& view, int axis) { return unit_axis(view, axis); }
TensorView with_unit_axis(const TensorView& view, int axis) { return unit_axis(view, axis); }

Tensor packed(const ConstTensorView& view) {
  Tensor out(view.type, view.dims);
  if (out.count() > 0) copy_elements(view, out.view());
  return out;
}

Tensor nan_tensor(const Dims& dims, DataType type) {
  Tensor out(type, dims);
  if (out.count() == 0) return out;
  if (type == DataType::kBF16) {
    std::fill_n(out.data<BFloat16>(), out.count(), BFloat16{0x7FC0});
  } else {
    std::fill_n(out.data<float>(), out.count(), std::numeric_limits<float>::quiet_NaN());
  }
  return out;
}

std::string text(const Dims& dims) {
  std::ostringstream out;
  out << dims;
  return out.str();
}

}  // namespace headway::tools
