// ONNX's element types as this library's.
#pragma once

#include <cstdint>
#include <string>

#include "headway/tensor.h"

namespace headway::importer {

/// `what` names the tensor in the message. Throws kUnsupported for a type that ONNX has and this library has not,
/// kInvalidArgument for one that ONNX has not.
DataType element_type(std::int32_t onnx_type, const std::string& what);

}  // namespace headway::importer
