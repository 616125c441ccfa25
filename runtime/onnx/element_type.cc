// See element_type.h. The numbers are those of TensorProto.DataType, newer ones than the header at hand included.
#include "runtime/onnx/element_type.h"

#include <array>
#include <optional>

#include "runtime/base/check.h"

namespace headway::importer {
namespace {

struct Row {
  const char* name;
  std::optional<DataType> type;
};

constexpr std::optional<DataType> kNone;
const std::array kRows = {
    Row{"undefined", kNone},
    Row{"float", DataType::kF32},
    Row{"uint8", DataType::kU8},
    Row{"int8", DataType::kI8},
    Row{"uint16", kNone},
    Row{"int16", kNone},
    Row{"int32", DataType::kI32},
    Row{"int64", DataType::kI64},
    Row{"string", kNone},
    Row{"bool", DataType::kBool},
    Row{"float16", DataType::kF16},
    Row{"double", DataType::kF64},
    Row{"uint32", kNone},
    Row{"uint64", kNone},
    Row{"complex64", kNone},
    Row{"complex128", kNone},
    Row{"bfloat16", DataType::kBF16},
    Row{"float8e4m3fn", kNone},
    Row{"float8e4m3fnuz", kNone},
    Row{"float8e5m2", kNone},
    Row{"float8e5m2fnuz", kNone},
    Row{"uint4", kNone},
    Row{"int4", kNone},
    Row{"float4e2m1", kNone},
    Row{"float8e8m0", kNone},
    Row{"uint2", kNone},
    Row{"int2", kNone},
};

}  // namespace

DataType element_type(std::int32_t onnx_type, const std::string& what) {
  require(onnx_type > 0 && onnx_type < static_cast<std::int32_t>(kRows.size()), what, " has element type ", onnx_type,
          ", expected 1 to ", kRows.size() - 1);
  const Row& row = kRows[static_cast<std::size_t>(onnx_type)];
  if (!row.type) fail(ErrorCode::kUnsupported, what, " has elements of type ", row.name, ", which is not supported");
  return *row.type;
}

}  // namespace headway::importer
