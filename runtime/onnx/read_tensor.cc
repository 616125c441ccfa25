// The three places where a tensor may keep its data: raw bytes, a list by type, a file of its own.
#include "runtime/onnx/read_tensor.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/onnx/element_type.h"
#include "runtime/onnx/mapped_buffer.h"

namespace headway::importer {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data is little-endian and used as it lies");

std::string described(const onnx::TensorProto& proto) { return "tensor " + quoted(proto.name()); }

Dims dims_of(const onnx::TensorProto& proto) {
  require(proto.dims_size() <= kMaxRank, described(proto), " has rank ", proto.dims_size(), ", at most ", kMaxRank,
          " is supported");
  Dims dims;
  for (int i = 0; i < proto.dims_size(); ++i) {
    require(proto.dims(i) >= 0, described(proto), " axis ", i, " is ", proto.dims(i), ", expected 0 or more");
    dims.push_back(proto.dims(i));
  }
  return dims;
}

// Less is copied: an object beside it would take as much, and shapes and scalars are read by everybody.
constexpr std::size_t kWorthMappingBytes = 4096;

// Integers are read where they lie by whoever infers shapes, so they must lie where integers may.
bool must_be_copied(DataType type, Bytes bytes) {
  if (type == DataType::kBool || bytes.size() < kWorthMappingBytes) return true;
  const bool integers = type == DataType::kI64 || type == DataType::kI32;
  return integers && reinterpret_cast<std::uintptr_t>(bytes.data()) % size_bytes(type) != 0;
}

/// Data of a file that outlives the import, or of a buffer that does not (no owner).
Tensor from_bytes(DataType type, const Dims& dims, Bytes bytes, const std::shared_ptr<const MappedFile>& owner) {
  if (owner && !must_be_copied(type, bytes)) {
    return Tensor::foreign(type, dims, std::make_shared<const MappedBuffer>(owner, bytes, size_bytes(type)));
  }
  Tensor tensor(type, dims);
  std::byte* to = tensor.view().data;
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  if (type == DataType::kBool) {
    // Any other byte than 0 and 1 is no bool to C++.
    for (std::size_t i = 0; i < bytes.size(); ++i) to[i] = std::byte{to[i] != std::byte{0}};
  }
  return tensor;
}

void check_bytes(const onnx::TensorProto& proto, DataType type, const Dims& dims, std::size_t bytes) {
  require(bytes == tensor_bytes(type, dims), described(proto), " of ", type_name(type), ' ', dims, " has ", bytes,
          " bytes of data, expected ", tensor_bytes(type, dims));
}

template <class To, class List>
Tensor from_list(const onnx::TensorProto& proto, DataType type, const Dims& dims, const List& list) {
  require(list.size() == element_count(dims), described(proto), " of ", type_name(type), ' ', dims, " has ",
          list.size(), " elements of data, expected ", element_count(dims));
  Tensor tensor(type, dims);
  auto* to = reinterpret_cast<To*>(tensor.view().data);
  for (const auto value : list) {
    if constexpr (std::is_same_v<To, bool>) {
      *to++ = value != 0;
    } else {
      *to++ = static_cast<To>(value);
    }
  }
  return tensor;
}

Tensor from_lists(const onnx::TensorProto& proto, DataType type, const Dims& dims) {
  switch (type) {
    case DataType::kF32:
      return from_list<float>(proto, type, dims, proto.float_data());
    case DataType::kF64:
      return from_list<double>(proto, type, dims, proto.double_data());
    case DataType::kI64:
      return from_list<std::int64_t>(proto, type, dims, proto.int64_data());
    case DataType::kI32:
      return from_list<std::int32_t>(proto, type, dims, proto.int32_data());
    case DataType::kF16:
    case DataType::kBF16:
      return from_list<std::uint16_t>(proto, type, dims, proto.int32_data());
    case DataType::kI8:
      return from_list<std::int8_t>(proto, type, dims, proto.int32_data());
    case DataType::kU8:
      return from_list<std::uint8_t>(proto, type, dims, proto.int32_data());
    case DataType::kBool:
      return from_list<bool>(proto, type, dims, proto.int32_data());
  }
  fail(ErrorCode::kInternal, described(proto), " is of a type without a list");
}

std::size_t number(const onnx::StringStringEntryProto& entry, const onnx::TensorProto& proto) {
  std::size_t value = 0;
  const std::string& text = entry.value();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), described(proto), " has the ", entry.key(), ' ',
          quoted(text), " in its external data, expected a number of bytes");
  return value;
}

Tensor from_file(const TensorSource& source, DataType type, const Dims& dims) {
  const onnx::TensorProto& proto = source.proto;
  require(source.external != nullptr, described(proto), " has external data, which is not expected here");
  std::string location;
  std::size_t offset = 0;
  std::size_t length = tensor_bytes(type, dims);
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number(entry, proto);
    if (entry.key() == "length") length = number(entry, proto);
  }
  check_bytes(proto, type, dims, length);
  const auto file = source.external->open(location, described(proto));
  const std::size_t size = file->bytes().size();
  require(offset <= size && length <= size - offset, described(proto), " takes ", length, " bytes from byte ", offset,
          " on of the file ", quoted(location), ", which has ", size, " bytes");
  return from_bytes(type, dims, file->bytes().subspan(offset, length), file);
}

}  // namespace

Tensor read_tensor(const TensorSource& source) {
  const onnx::TensorProto& proto = source.proto;
  const DataType type = element_type(proto.data_type(), described(proto));
  const Dims dims = dims_of(proto);
  try {
    tensor_bytes(type, dims);
  } catch (const Error& error) {
    throw Error(error.code(), described(proto) + ": " + error.what());
  }
  if (proto.has_segment())
    fail(ErrorCode::kUnsupported, described(proto), " comes in segments, which is not supported");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return from_file(source, type, dims);
  if (!source.raw_data.empty()) {
    check_bytes(proto, type, dims, source.raw_data.size());
    return from_bytes(type, dims, source.raw_data, source.file);
  }
  if (!proto.has_raw_data()) return from_lists(proto, type, dims);
  check_bytes(proto, type, dims, proto.raw_data().size());
  return from_bytes(type, dims, std::as_bytes(std::span(proto.raw_data())), nullptr);
}

}  // namespace headway::importer
