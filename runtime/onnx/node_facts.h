// What a node of the file is called, in the registry and in messages. Knows no graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "runtime/onnx/scope.h"

namespace headway::importer {

/// The operator's name in the registry.
std::string op_name(const onnx::NodeProto& node);
/// Whether it is this operator of ONNX's own domain.
bool is_standard(const onnx::NodeProto& node, const char* op);
/// The node's own name, or that of what it makes.
std::string node_name(const onnx::NodeProto& node, const Scope& scope);
/// "node 'a' ('Add')"
std::string described(const onnx::NodeProto& node, const Scope& scope);

}  // namespace headway::importer
