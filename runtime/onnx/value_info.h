// What a file says of an input, and the constants that it writes as plain attributes. Knows no names of values.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "headway/graph.h"

namespace headway::importer {

struct InputInfo {
  DataType type;
  std::vector<SymbolicDim> dims;
};

/// Dims without a size or a name get one of their own. Throws kUnsupported for what is no tensor or has no rank.
InputInfo input_info(const onnx::ValueInfoProto& input);

/// Throws kUnsupported when the file says that the output is no tensor.
void check_output(const onnx::ValueInfoProto& output);

/// value_int, value_floats, …: a scalar or a vector. Throws kUnsupported for the rest.
Tensor constant_of_attribute(const std::string& name, const onnx::AttributeProto& attribute);

}  // namespace headway::importer
