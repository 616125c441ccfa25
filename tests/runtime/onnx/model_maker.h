// Small ONNX models made on the spot, right ones for tests to read and to spoil.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace headway::testing_onnx {

using Strings = std::vector<std::string>;

/// A model of ai.onnx `opset` without nodes.
onnx::ModelProto empty_model(std::int64_t opset = 17);
/// A dim "7" is a size, "" neither size nor name, anything else a name.
void add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* list, const std::string& name, int type,
               const Strings& dims);
onnx::NodeProto* add_node(onnx::GraphProto* graph, const std::string& op, const Strings& inputs,
                          const Strings& outputs);
onnx::NodeProto* add_node(google::protobuf::RepeatedPtrField<onnx::NodeProto>* list, const std::string& op,
                          const Strings& inputs, const Strings& outputs);
onnx::AttributeProto* add_attribute(onnx::NodeProto* node, const std::string& name,
                                    onnx::AttributeProto::AttributeType type);
void set_integers(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values);
onnx::TensorProto raw_floats(const std::string& name, const std::vector<std::int64_t>& dims,
                             const std::vector<float>& values);
onnx::TensorProto raw_integers(const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& values);

/// y = x + bias, x [batch, 1, 64], bias [2, 64], reshaped to [batch, 128]; names x, bias, shape, sum, y. bias is large
/// enough to be cut out of the file before protobuf reads it.
onnx::ModelProto small_model();

std::vector<std::byte> bytes_of(const onnx::ModelProto& model);

}  // namespace headway::testing_onnx
