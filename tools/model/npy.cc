// From the header's terms to a tensor. See npy.h.
#include "tools/model/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"
#include "tools/model/npy_header.h"

namespace headway::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are little-endian and used as they are");

struct ElementType {
  std::string_view descr;
  DataType type;
};
constexpr ElementType kTypes[] = {{"<f4", DataType::kF32}, {"<f8", DataType::kF64}, {"<f2", DataType::kF16},
                                  {"|i1", DataType::kI8},  {"|u1", DataType::kU8},  {"<i4", DataType::kI32},
                                  {"<i8", DataType::kI64}, {"|b1", DataType::kBool}};

DataType type_of(const std::string& descr, const std::string& shown) {
  const auto known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const ElementType& type) { return type.descr == descr; });
  if (known == std::end(kTypes)) {
    fail(ErrorCode::kUnsupported, shown, ": elements of type ", quoted(descr),
         " are not supported, expected <f2, <f4, <f8, |i1, |u1, <i4, <i8 or |b1");
  }
  return known->type;
}

// A bool that is neither 0 nor 1 is undefined behaviour to read as one.
void check_bools(std::span<const std::byte> elements, const std::string& shown) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const int byte = std::to_integer<int>(elements[i]);
    require(byte <= 1, shown, ": holds ", byte, " at element ", i, ", expected a bool, 0 or 1");
  }
}

std::size_t bytes_of(DataType type, const Dims& dims, const std::string& shown) {
  try {
    return tensor_bytes(type, dims);
  } catch (const Error& error) {
    throw Error(error.code(), one_line(shown + ": " + error.what()));
  }
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const MappedFile file(path);
  const std::string shown = printable(path);
  const NpyHeader header = read_npy_header(file.bytes(), path);
  const DataType type = type_of(header.descr, shown);
  if (header.fortran_order && header.shape.rank() > 1) {
    fail(ErrorCode::kUnsupported, shown, ": is in Fortran order (fortran_order is True), expected row-major");
  }
  const std::size_t bytes = bytes_of(type, header.shape, shown);
  const std::span<const std::byte> elements = file.bytes().subspan(header.data_offset);
  require(elements.size() == bytes, shown, ": has ", elements.size(), " bytes of elements, expected ", bytes, " for ",
          header.shape, " of ", type_name(type));
  if (type == DataType::kBool) check_bools(elements, shown);
  Tensor tensor(type, header.shape);
  if (bytes > 0) std::memcpy(tensor.view().data, elements.data(), bytes);
  return tensor;
}

}  // namespace headway::tools
