// The local functions of a model, by the domain and name that nodes call them by.
#pragma once

#include <onnx/onnx_pb.h>

#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "runtime/onnx/scope.h"

namespace headway::importer {

struct Function {
  const onnx::FunctionProto* proto;
  AttributeMap defaults;  ///< of the attributes that have one
};

class Functions {
 public:
  explicit Functions(const onnx::ModelProto& model);
  /// Null when the node calls no local function.
  const Function* find(const onnx::NodeProto& node) const;
  /// Calls visit(attribute) for all default attributes.
  template <class Visit>
  void for_each_default(const Visit& visit) const {
    for (const onnx::AttributeProto& attribute : defaults_) visit(attribute);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  std::map<Key, Function> functions_;
  std::deque<onnx::AttributeProto> defaults_;  // that `functions_` points to
};

}  // namespace headway::importer
