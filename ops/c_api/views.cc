// Device, element type, dims and strides, each checked. See views.h.
#include "ops/c_api/views.h"

#include <span>

#include "runtime/base/check.h"

namespace headway::c_api {
namespace {

constexpr std::int32_t kCpu = 1;
enum Code : std::uint8_t { kSigned = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

DataType type_of(const headway_tensor& tensor, const char* what) {
  const int code = tensor.dtype.code, bits = tensor.dtype.bits;
  require(tensor.dtype.lanes == 1, what, " has ", tensor.dtype.lanes, " lanes, expected 1");
  switch (code << 8 | bits) {
    case kFloat << 8 | 32:
      return DataType::kF32;
    case kFloat << 8 | 64:
      return DataType::kF64;
    case kFloat << 8 | 16:
      return DataType::kF16;
    case kBfloat << 8 | 16:
      return DataType::kBF16;
    case kSigned << 8 | 8:
      return DataType::kI8;
    case kUnsigned << 8 | 8:
      return DataType::kU8;
    case kSigned << 8 | 32:
      return DataType::kI32;
    case kSigned << 8 | 64:
      return DataType::kI64;
    case kBool << 8 | 8:
      return DataType::kBool;
    default:
      fail(ErrorCode::kUnsupported, what, " has the DLPack type of code ", code, " and ", bits,
           " bits, expected "
           "float of 16, 32 or 64, bfloat of 16, int of 8, 32 or 64, uint of 8 or bool of 8");
  }
}

}  // namespace

TensorView view(const headway_tensor* tensor, const char* what) {
  if (tensor == nullptr) return {};
  require(tensor->device.device_type == kCpu, what, " is on DLPack device ", tensor->device.device_type, ", expected ",
          kCpu, ", the CPU");
  require(tensor->ndim >= 0 && tensor->ndim <= kMaxRank, what, " has ", tensor->ndim, " dims, expected 0 to ",
          kMaxRank);
  require(tensor->ndim == 0 || tensor->shape != nullptr, what, " has ", tensor->ndim, " dims and no shape");
  const auto rank = static_cast<std::size_t>(tensor->ndim);
  const Dims dims(std::span<const std::int64_t>(tensor->shape, rank));
  const std::int64_t count = element_count(dims);
  require(count == 0 || tensor->data != nullptr, what, " has ", count, " elements and no data");
  const DataType type = type_of(*tensor, what);
  auto* const data = static_cast<std::byte*>(tensor->data) + (tensor->data == nullptr ? 0 : tensor->byte_offset);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(data) % size_bytes(type);
  require(misaligned == 0, what, " is ", misaligned, " bytes past a multiple of ", size_bytes(type), ", expected 0");
  if (tensor->strides == nullptr) return {data, type, dims};
  return {data, type, dims, Dims(std::span<const std::int64_t>(tensor->strides, rank))};
}

TensorView required_view(const headway_tensor* tensor, const char* what) {
  require(tensor != nullptr, what, " is null");
  return view(tensor, what);
}

}  // namespace headway::c_api
