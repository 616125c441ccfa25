// See model_builder.h.
#include "tests/fuzz/model_builder.h"

#include <set>

namespace headway::fuzz {
namespace {

/// What an operator adds to the doubts about its inputs.
unsigned doubts_after(const std::string& op, unsigned doubts) {
  for (const char* const one : {"Pow", "Log", "Sqrt", "Exp", "Div", "Reciprocal"}) {
    if (op == one) doubts |= kNotFinite;
  }
  return op == "Softmax" ? doubts & ~static_cast<unsigned>(kFills) : doubts;
}

}  // namespace

std::int64_t count_of(const Sizes& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

ModelBuilder::ModelBuilder(Dice* dice, std::int64_t opset) : dice_(dice), opset_(opset) {
  model_.set_ir_version(9);
  model_.set_producer_name("headway_fuzz");
  model_.add_opset_import()->set_version(opset);
  auto* microsoft = model_.add_opset_import();
  microsoft->set_domain("com.microsoft");
  microsoft->set_version(1);
  model_.mutable_graph()->set_name("graph");
}

Value ModelBuilder::input(int type, const Sizes& dims) {
  onnx::ValueInfoProto* info = model_.mutable_graph()->add_input();
  const Value value{fresh("in"), type, dims};
  info->set_name(value.name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::int64_t dim : dims) {
    auto* added = tensor->mutable_shape()->add_dim();
    if (dice_->one_in(2)) {
      added->set_dim_param("n" + std::to_string(dim));
    } else {
      added->set_dim_value(dim);
    }
  }
  values_.push_back(value);
  return value;
}

Value ModelBuilder::floats(const Sizes& dims, const std::vector<float>& numbers) {
  onnx::TensorProto* tensor = model_.mutable_graph()->add_initializer();
  const Value value{fresh("c"), kF32, dims};
  tensor->set_name(value.name);
  tensor->set_data_type(kF32);
  for (const std::int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(numbers.data(), numbers.size() * sizeof(float));
  return value;
}

Value ModelBuilder::random_floats(const Sizes& dims) {
  std::vector<float> numbers(static_cast<std::size_t>(count_of(dims)));
  for (float& number : numbers) number = dice_->unit();
  return floats(dims, numbers);
}

Value ModelBuilder::integers(const Sizes& dims, const std::vector<std::int64_t>& numbers) {
  onnx::TensorProto* tensor = model_.mutable_graph()->add_initializer();
  const Value value{fresh("i"), kI64, dims};
  tensor->set_name(value.name);
  tensor->set_data_type(kI64);
  for (const std::int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(numbers.data(), numbers.size() * sizeof(std::int64_t));
  return value;
}

Value ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs, int type, const Sizes& dims) {
  onnx::NodeProto* made = model_.mutable_graph()->add_node();
  made->set_op_type(op);
  made->set_name(fresh("node"));
  unsigned doubts = 0;
  for (const std::string& name : inputs) {
    made->add_input(name);
    if (const auto found = doubts_.find(name); found != doubts_.end()) doubts |= found->second;
  }
  return doubt(also(type, dims), doubts_after(op, doubts));
}

Value ModelBuilder::doubt(const Value& value, unsigned doubts) {
  Value doubtful = value;
  doubtful.doubts |= doubts;
  doubts_[value.name] = doubtful.doubts;
  for (Value& one : values_) {
    if (one.name == value.name) one.doubts = doubtful.doubts;
  }
  return doubtful;
}

Value ModelBuilder::node(const std::string& op, const std::vector<Value>& inputs, int type, const Sizes& dims) {
  std::vector<std::string> names;
  for (const Value& input : inputs) names.push_back(input.name);
  return node(op, names, type, dims);
}

Value ModelBuilder::also(int type, const Sizes& dims) {
  const Value value{fresh("v"), type, dims};
  last()->add_output(value.name);
  values_.push_back(value);
  return value;
}

onnx::AttributeProto* ModelBuilder::new_attribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* made = last()->add_attribute();
  made->set_name(name);
  made->set_type(type);
  return made;
}

void ModelBuilder::attribute(const std::string& name, std::int64_t number) {
  new_attribute(name, onnx::AttributeProto::INT)->set_i(number);
}
void ModelBuilder::attribute(const std::string& name, float number) {
  new_attribute(name, onnx::AttributeProto::FLOAT)->set_f(number);
}
void ModelBuilder::attribute(const std::string& name, const std::string& text) {
  new_attribute(name, onnx::AttributeProto::STRING)->set_s(text);
}
void ModelBuilder::attribute(const std::string& name, const std::vector<std::int64_t>& numbers) {
  onnx::AttributeProto* made = new_attribute(name, onnx::AttributeProto::INTS);
  for (const std::int64_t number : numbers) made->add_ints(number);
}

onnx::ModelProto ModelBuilder::finish() {
  std::set<std::string> read;
  for (const onnx::NodeProto& one : model_.graph().node()) read.insert(one.input().begin(), one.input().end());
  for (const Value& value : values_) {
    if (value.name[0] != 'v') continue;
    if (read.count(value.name) != 0 && !dice_->one_in(12)) continue;
    onnx::ValueInfoProto* output = model_.mutable_graph()->add_output();
    output->set_name(value.name);
    output->mutable_type()->mutable_tensor_type()->set_elem_type(value.type);
  }
  if (model_.graph().output_size() == 0 && !values_.empty()) {
    model_.mutable_graph()->add_output()->set_name(values_.back().name);
  }
  return model_;
}

}  // namespace headway::fuzz
