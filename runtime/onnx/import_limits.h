// What a model grows to when functions are inlined where they are called and branches where they stand: counted from
// the file before anything is built, in time linear in the file. Knows no values and builds nothing.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>

#include "headway/onnx.h"
#include "runtime/onnx/functions.h"

namespace headway::importer {

class Expansion {
 public:
  explicit Expansion(const Functions& functions, const onnx::ModelProto& model, const ImportLimits& limits);
  /// Throws kUnsupported, naming the limit and both numbers, for a model that grows beyond one.
  void check(const onnx::GraphProto& graph);

 private:
  /// Of a list of nodes: all saturate at the largest number.
  struct Counts {
    std::uint64_t nodes = 0;
    std::uint64_t steps = 0;
    std::uint64_t names = 0;       ///< stored in the graph, each with the prefix of the scope in front
    std::uint64_t name_bytes = 0;  ///< of those names without that prefix
    std::uint64_t bytes = 0;
    int depth = 0;  ///< levels of branches and calls, this one included
  };
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  Counts count(const Nodes& nodes, int depth, bool inlined);
  void add_node(const onnx::NodeProto& node, int depth, bool inlined, Counts* counts);
  /// What is inlined under a node whose name is `name_bytes` long.
  static void add_inlined(const Counts& inner, std::uint64_t name_bytes, Counts* counts);
  const Counts& count_function(const Function& function, int depth);
  std::uint64_t attribute_bytes(const onnx::AttributeProto& attribute) const;
  void check_depth(int depth) const;

  const Functions& functions_;
  const ImportLimits& limits_;
  std::map<const Function*, Counts> counted_;
  std::uint64_t largest_list_bytes_ = 0;  ///< of any attribute in the file: what a reference may stand for
};

}  // namespace headway::importer
