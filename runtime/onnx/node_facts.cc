// See node_facts.h.
#include "runtime/onnx/node_facts.h"

#include "runtime/base/printable.h"

namespace headway::importer {

std::string op_name(const onnx::NodeProto& node) {
  if (!node.domain().empty() && node.domain() != "ai.onnx") return node.domain() + '.' + node.op_type();
  return node.op_type() == "Attention" ? "onnx.Attention" : node.op_type();
}

bool is_standard(const onnx::NodeProto& node, const char* op) {
  return (node.domain().empty() || node.domain() == "ai.onnx") && node.op_type() == op;
}

std::string node_name(const onnx::NodeProto& node, const Scope& scope) {
  if (!node.name().empty()) return scope.prefix() + node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return scope.prefix() + output;
  }
  return scope.prefix() + node.op_type();
}

std::string described(const onnx::NodeProto& node, const Scope& scope) {
  return "node " + quoted(node_name(node, scope)) + " (" + quoted(op_name(node)) + ")";
}

}  // namespace headway::importer
