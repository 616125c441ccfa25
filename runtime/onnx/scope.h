// What names mean while a graph, a branch or the body of a function is read. Knows no protobuf field but attributes.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <unordered_map>

#include "headway/graph.h"

namespace headway::importer {

/// Attributes of a node by name, references to those of an enclosing call followed.
using AttributeMap = std::map<std::string, const onnx::AttributeProto*>;

class Scope {
 public:
  /// `outer` is seen through (a branch of an If), null for none. `prefix` goes in front of the names of nodes.
  Scope(const Scope* outer, std::string prefix) : outer_(outer), prefix_(std::move(prefix)) {}

  /// Throws kInvalidArgument when this scope has the name. A name that stands for nothing gets kNoValue.
  void define(const std::string& name, ValueId value);
  /// Null when there is no such name.
  const ValueId* find(const std::string& name) const;
  bool defines(const std::string& name) const { return values_.count(name) != 0; }

  const std::string& prefix() const { return prefix_; }

  /// What the attributes of the call are that this is the body of.
  void set_arguments(AttributeMap arguments) { arguments_ = std::move(arguments); }
  /// The attribute itself, or the one it refers to; null when the call left that one out.
  const onnx::AttributeProto* resolve(const onnx::AttributeProto& attribute) const;
  AttributeMap resolve_all(const onnx::NodeProto& node) const;

 private:
  const Scope* outer_;
  std::string prefix_;
  std::unordered_map<std::string, ValueId> values_;
  AttributeMap arguments_;
};

}  // namespace headway::importer
