// See scope.h.
#include "runtime/onnx/scope.h"

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/base/quoted.h"

namespace headway::importer {

void Scope::define(const std::string& name, ValueId value) {
  require(values_.emplace(name, value).second, "value ", Quoted{name}, " is made twice");
}

const ValueId* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

const onnx::AttributeProto* Scope::resolve(const onnx::AttributeProto& attribute) const {
  if (attribute.ref_attr_name().empty()) return &attribute;
  // A branch inside a function's body refers to the attributes of the function's call.
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->arguments_.find(attribute.ref_attr_name());
    if (found != scope->arguments_.end()) return found->second;
  }
  return nullptr;
}

AttributeMap Scope::resolve_all(const onnx::NodeProto& node) const {
  AttributeMap attributes;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const onnx::AttributeProto* resolved = resolve(attribute);
    if (resolved != nullptr) attributes[attribute.name()] = resolved;
  }
  return attributes;
}

}  // namespace headway::importer
