// See value_info.h.
#include "runtime/onnx/value_info.h"

#include <algorithm>
#include <array>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/onnx/element_type.h"

namespace headway::importer {
namespace {

const char* kind(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kSequenceType:
      return "a sequence";
    case onnx::TypeProto::kMapType:
      return "a map";
    case onnx::TypeProto::kOptionalType:
      return "an optional";
    case onnx::TypeProto::kSparseTensorType:
      return "a sparse tensor";
    case onnx::TypeProto::VALUE_NOT_SET:
      return "of no type";
    default:
      return "of an unknown type";
  }
}

template <class T, class List>
Tensor filled(const Dims& dims, const List& list) {
  Tensor tensor(data_type_of<T>(), dims);
  std::copy(list.begin(), list.end(), tensor.data<T>());
  return tensor;
}

}  // namespace

InputInfo input_info(const onnx::ValueInfoProto& input) {
  const std::string what = "input " + quoted(input.name());
  if (!input.type().has_tensor_type()) {
    fail(ErrorCode::kUnsupported, what, " is ", kind(input.type()), ", only tensors are supported");
  }
  const onnx::TypeProto::Tensor& tensor = input.type().tensor_type();
  InputInfo info{element_type(tensor.elem_type(), what), {}};
  if (!tensor.has_shape()) fail(ErrorCode::kUnsupported, what, " has no shape, not even a rank");
  require(tensor.shape().dim_size() <= kMaxRank, what, " has rank ", tensor.shape().dim_size(), ", at most ", kMaxRank,
          " is supported");
  for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
    const onnx::TensorShapeProto::Dimension& dim = tensor.shape().dim(axis);
    if (dim.has_dim_value()) {
      require(dim.dim_value() >= 0, what, " axis ", axis, " is ", dim.dim_value(), ", expected 0 or more");
      info.dims.emplace_back(dim.dim_value());
    } else if (!dim.dim_param().empty()) {
      info.dims.emplace_back(dim.dim_param());
    } else {
      info.dims.emplace_back(input.name() + ':' + std::to_string(axis));
    }
  }
  return info;
}

void check_output(const onnx::ValueInfoProto& output) {
  if (output.type().value_case() == onnx::TypeProto::VALUE_NOT_SET || output.type().has_tensor_type()) return;
  fail(ErrorCode::kUnsupported, "output ", quoted(output.name()), " is ", kind(output.type()),
       ", only tensors are supported");
}

Tensor constant_of_attribute(const std::string& name, const onnx::AttributeProto& attribute) {
  const std::array<float, 1> f{attribute.f()};
  const std::array<std::int64_t, 1> i{attribute.i()};
  if (name == "value_float") return filled<float>({}, f);
  if (name == "value_int") return filled<std::int64_t>({}, i);
  if (name == "value_floats") return filled<float>({attribute.floats_size()}, attribute.floats());
  if (name == "value_ints") return filled<std::int64_t>({attribute.ints_size()}, attribute.ints());
  fail(ErrorCode::kUnsupported, "holds its value as ", quoted(name), ", which is not supported");
}

}  // namespace headway::importer
