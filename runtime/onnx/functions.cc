// See functions.h. Overloads and default attributes are younger than some releases of the header in use, which keep
// them as unknown fields; they are read from there.
#include "runtime/onnx/functions.h"

#include <google/protobuf/unknown_field_set.h>

#include "runtime/base/check.h"

namespace headway::importer {
namespace {

constexpr int kNodeOverload = 8;
constexpr int kFunctionAttributeProto = 11;
constexpr int kFunctionOverload = 13;

using google::protobuf::UnknownField;

template <class Message, class Visit>
void for_each_unknown(const Message& message, int number, const Visit& visit) {
  const auto& fields = message.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      visit(field.length_delimited());
    }
  }
}

// A header that knows the field has an accessor for it; overload resolution takes the first of two that compiles.
template <class Message>
auto overload_of(const Message& message, int, int) -> decltype(std::string(message.overload())) {
  return message.overload();
}
template <class Message>
std::string overload_of(const Message& message, int number, long) {
  std::string overload;
  for_each_unknown(message, number, [&](const std::string& bytes) { overload = bytes; });
  return overload;
}

template <class Message>
auto add_defaults(const Message& function, std::deque<onnx::AttributeProto>* out, int)
    -> decltype(function.attribute_proto(), void()) {
  for (const onnx::AttributeProto& attribute : function.attribute_proto()) out->push_back(attribute);
}
template <class Message>
void add_defaults(const Message& function, std::deque<onnx::AttributeProto>* out, long) {
  for_each_unknown(function, kFunctionAttributeProto, [&](const std::string& bytes) {
    onnx::AttributeProto attribute;
    require(attribute.ParseFromString(bytes), "not an ONNX file: a function's attribute cannot be read");
    out->push_back(std::move(attribute));
  });
}

std::string normalised(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

}  // namespace

Functions::Functions(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& proto : model.functions()) {
    Function function{&proto, {}};
    const std::size_t first = defaults_.size();
    add_defaults(proto, &defaults_, 0);
    for (std::size_t i = first; i < defaults_.size(); ++i) function.defaults[defaults_[i].name()] = &defaults_[i];
    functions_[{normalised(proto.domain()), proto.name(), overload_of(proto, kFunctionOverload, 0)}] = function;
  }
}

const Function* Functions::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({normalised(node.domain()), node.op_type(), overload_of(node, kNodeOverload, 0)});
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace headway::importer
