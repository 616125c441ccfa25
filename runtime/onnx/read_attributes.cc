// See read_attributes.h.
#include "runtime/onnx/read_attributes.h"

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/base/quoted.h"

namespace headway::importer {
namespace {

Attribute read_attribute(const std::string& name, const onnx::AttributeProto& from) {
  switch (from.type()) {
    case onnx::AttributeProto::FLOAT:
      return from.f();
    case onnx::AttributeProto::INT:
      return from.i();
    case onnx::AttributeProto::STRING:
      return from.s();
    case onnx::AttributeProto::FLOATS:
      return std::vector<float>(from.floats().begin(), from.floats().end());
    case onnx::AttributeProto::INTS:
      return std::vector<std::int64_t>(from.ints().begin(), from.ints().end());
    default:
      break;
  }
  require(from.type() != onnx::AttributeProto::UNDEFINED, "attribute ", Quoted{name}, " has no type");
  return "(of type " + onnx::AttributeProto::AttributeType_Name(from.type()) + ")";
}

}  // namespace

Attributes read_attributes(const AttributeMap& attributes) {
  Attributes out;
  for (const auto& [name, attribute] : attributes) out.set(name, read_attribute(name, *attribute));
  return out;
}

}  // namespace headway::importer
