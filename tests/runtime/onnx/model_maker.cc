// See model_maker.h.
#include "tests/runtime/onnx/model_maker.h"

#include <cstring>

namespace headway::testing_onnx {

onnx::ModelProto empty_model(std::int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("model_maker");
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("graph");
  return model;
}

void add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* list, const std::string& name, int type,
               const Strings& dims) {
  onnx::ValueInfoProto* value = list->Add();
  value->set_name(name);
  auto* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::string& dim : dims) {
    auto* added = tensor->mutable_shape()->add_dim();
    if (dim.empty()) continue;
    if (dim.find_first_not_of("-0123456789") == std::string::npos) {
      added->set_dim_value(std::stoll(dim));
    } else {
      added->set_dim_param(dim);
    }
  }
}

onnx::NodeProto* add_node(onnx::GraphProto* graph, const std::string& op, const Strings& inputs,
                          const Strings& outputs) {
  return add_node(graph->mutable_node(), op, inputs, outputs);
}

onnx::NodeProto* add_node(google::protobuf::RepeatedPtrField<onnx::NodeProto>* list, const std::string& op,
                          const Strings& inputs, const Strings& outputs) {
  onnx::NodeProto* node = list->Add();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return node;
}

onnx::AttributeProto* add_attribute(onnx::NodeProto* node, const std::string& name,
                                    onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

void set_integers(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto* attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (std::int64_t value : values) attribute->add_ints(value);
}

namespace {

template <class T>
onnx::TensorProto raw_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                             const std::vector<T>& values) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
  return tensor;
}

}  // namespace

onnx::TensorProto raw_floats(const std::string& name, const std::vector<std::int64_t>& dims,
                             const std::vector<float>& values) {
  return raw_tensor(name, onnx::TensorProto::FLOAT, dims, values);
}

onnx::TensorProto raw_integers(const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& values) {
  return raw_tensor(name, onnx::TensorProto::INT64, dims, values);
}

onnx::ModelProto small_model() {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"batch", "1", "64"});
  add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {"", "128"});
  std::vector<float> bias(128);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  *graph->add_initializer() = raw_floats("bias", {2, 64}, bias);
  *graph->add_initializer() = raw_integers("shape", {2}, {-1, 128});
  add_node(graph, "Add", {"x", "bias"}, {"sum"});
  add_node(graph, "Reshape", {"sum", "shape"}, {"y"});
  return model;
}

std::vector<std::byte> bytes_of(const onnx::ModelProto& model) {
  const std::string text = model.SerializeAsString();
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace headway::testing_onnx
