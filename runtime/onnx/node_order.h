// The order in which nodes can be added: each behind those that make what it reads. Decides nothing else; knows no
// operator.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "runtime/onnx/scope.h"

namespace headway::importer {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// True when every value that the branches of a node take from outside exists in the scope.
bool branches_are_ready(const onnx::NodeProto& node, const Scope& scope);

/// The nodes from `first` on, by number, in the order of the file as far as it is one: always the first node next whose
/// values exist. A value that no node makes holds nobody up; whoever adds the node refuses it. Throws kInvalidArgument
/// naming a node of a cycle.
std::vector<int> node_order(const Nodes& nodes, int first, const Scope& scope);

}  // namespace headway::importer
