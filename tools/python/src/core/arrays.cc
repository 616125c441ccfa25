// How arrays become views, and what is refused on the way.
#include "arrays.h"

#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include "headway/error.h"

namespace headway::python {
namespace {

struct TypeRow {
  nb::dlpack::dtype dlpack;
  DataType type;
};

constexpr std::uint8_t code(nb::dlpack::dtype_code value) { return static_cast<std::uint8_t>(value); }

constexpr std::array kTypes = {
    TypeRow{{code(nb::dlpack::dtype_code::Float), 32, 1}, DataType::kF32},
    TypeRow{{code(nb::dlpack::dtype_code::Float), 64, 1}, DataType::kF64},
    TypeRow{{code(nb::dlpack::dtype_code::Float), 16, 1}, DataType::kF16},
    TypeRow{{code(nb::dlpack::dtype_code::Bfloat), 16, 1}, DataType::kBF16},
    TypeRow{{code(nb::dlpack::dtype_code::Int), 8, 1}, DataType::kI8},
    TypeRow{{code(nb::dlpack::dtype_code::UInt), 8, 1}, DataType::kU8},
    TypeRow{{code(nb::dlpack::dtype_code::Int), 32, 1}, DataType::kI32},
    TypeRow{{code(nb::dlpack::dtype_code::Int), 64, 1}, DataType::kI64},
    TypeRow{{code(nb::dlpack::dtype_code::Bool), 8, 1}, DataType::kBool},
};

DataType type_of(nb::dlpack::dtype dtype, const char* name) {
  for (const TypeRow& row : kTypes) {
    if (row.dlpack == dtype) return row.type;
  }
  detail::fail(ErrorCode::kUnsupported, name, " has elements of ", int(dtype.bits), " bits of DLPack's type code ",
               int(dtype.code), ", which are not supported");
}

std::string kind_of(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

// View of what DLPack describes.
template <class Byte>
BasicTensorView<Byte> view_of_dlpack(const nb::dlpack::dltensor& tensor, const char* name) {
  detail::require(tensor.device.device_type == nb::device::cpu::value, name, " is on a device of DLPack's type ",
                  tensor.device.device_type, ", expected the CPU");
  const DataType type = type_of(tensor.dtype, name);
  detail::require(tensor.ndim <= kMaxRank, name, " has rank ", tensor.ndim, ", at most ", kMaxRank, " is supported");
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  const Dims dims(std::span<const std::int64_t>(tensor.shape, rank));
  const Dims strides =
      tensor.strides ? Dims(std::span<const std::int64_t>(tensor.strides, rank)) : contiguous_strides(dims);
  auto* data = static_cast<std::byte*>(tensor.data);
  if (data) data += tensor.byte_offset;
  detail::require(reinterpret_cast<std::uintptr_t>(data) % size_bytes(type) == 0, name, " is not aligned to its ",
                  size_bytes(type), " byte elements");
  return {data, type, dims, strides};
}

// DLPack 1.2's DLPackExchangeAPI, which a type of arrays has as __dlpack_c_exchange_api__: describes an array without
// an object of Python's, in a hundredth of the time of __dlpack__.
struct ExchangeApi {
  std::uint32_t major, minor;
  const ExchangeApi* previous;
  void* allocate;
  void* managed_from_python;
  void* managed_to_python;
  int (*tensor_from_python)(void* object, nb::dlpack::dltensor* tensor);
  void* current_stream;
};

const ExchangeApi* exchange_api(nb::handle object) {
  const nb::object capsule = nb::getattr(object.type(), "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->major > 1) api = api->previous;
  return api && api->major == 1 && api->tensor_from_python ? api : nullptr;
}

template <class Held, class Byte>
Held held_array(nb::handle object, const char* name, const char* what) {
  Held held;
  if (object.is_none()) return held;
  nb::dlpack::dltensor tensor;
  if (const ExchangeApi* api = exchange_api(object)) {
    if (api->tensor_from_python(object.ptr(), &tensor) == 0) {
      held.owner = nb::borrow(object);
      held.view = view_of_dlpack<Byte>(tensor, name);
      return held;
    }
    PyErr_Clear();
  }
  auto& array = held.holder;
  if (!nb::try_cast(object, array, false)) {
    detail::fail(ErrorCode::kInvalidArgument, name, " is ", kind_of(object), ", expected ", what,
                 " array on the CPU (numpy, torch or another that speaks DLPack)");
  }
  Dims dims, strides;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    detail::require(i < kMaxRank, name, " has rank ", array.ndim(), ", at most ", kMaxRank, " is supported");
    dims.push_back(static_cast<std::int64_t>(array.shape(i)));
    strides.push_back(array.stride(i));
  }
  tensor = {const_cast<void*>(static_cast<const void*>(array.data())),
            {array.device_type(), array.device_id()},
            dims.rank(),
            array.dtype(),
            &dims[0],
            &strides[0],
            0};
  held.view = view_of_dlpack<Byte>(tensor, name);
  return held;
}

std::int32_t index_of(std::int64_t value, const char* name) {
  detail::require(
      value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max(), name,
      " has ", value, ", which 32 bits do not hold");
  return static_cast<std::int32_t>(value);
}

void copy_sequence(nb::handle object, const char* name, int depth, Dims* dims, std::vector<std::int32_t>* to) {
  const auto size = static_cast<std::int64_t>(nb::len(object));
  if (dims->rank() == depth) dims->push_back(size);
  detail::require((*dims)[depth] == size, name, " has rows of ", (*dims)[depth], " and ", size, " numbers");
  for (nb::handle item : nb::borrow<nb::sequence>(object)) {
    std::int64_t value = 0;
    if (nb::isinstance<nb::sequence>(item) && depth + 1 < kMaxRank) {
      copy_sequence(item, name, depth + 1, dims, to);
    } else {
      if (!nb::try_cast(item, value) || dims->rank() != depth + 1) {
        detail::fail(ErrorCode::kInvalidArgument, name, " has ", kind_of(item), " where a whole number was expected");
      }
      to->push_back(index_of(value, name));
    }
  }
}

}  // namespace

DataType type_of_name(const std::string& name) {
  std::string known;
  for (const TypeRow& row : kTypes) {
    if (name == type_name(row.type)) return row.type;
    known += (known.empty() ? "" : ", ") + std::string(type_name(row.type));
  }
  detail::fail(ErrorCode::kInvalidArgument, "type is \"", name, "\", expected one of ", known);
}

InputArray input_array(nb::handle object, const char* name) {
  return held_array<InputArray, const std::byte>(object, name, "an");
}

OutputArray output_array(nb::handle object, const char* name) {
  return held_array<OutputArray, std::byte>(object, name, "a writable");
}

IndexArray index_array(nb::handle object, const char* name) {
  IndexArray index;
  if (object.is_none()) return index;
  Dims dims;
  if (nb::isinstance<nb::sequence>(object) && (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))) {
    copy_sequence(object, name, 0, &dims, &index.copy);
  } else {
    index.array = input_array(object, name);
    if (index.array.view.type != DataType::kI64) {
      detail::require(index.array.view.type == DataType::kI32, name, " is ", type_name(index.array.view.type),
                      ", expected i32 or i64");
      index.view = index.array.view;
      return index;
    }
    dims = index.array.view.dims;
    std::vector<std::int64_t> wide(static_cast<std::size_t>(element_count(dims)));
    copy_elements(index.array.view, view_of(wide.data(), dims));
    for (std::int64_t value : wide) index.copy.push_back(index_of(value, name));
  }
  index.view = view_of(static_cast<const std::int32_t*>(index.copy.data()), dims);
  return index;
}

}  // namespace headway::python
