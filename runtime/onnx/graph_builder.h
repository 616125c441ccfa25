// The nodes of a model as nodes of a graph: names to values, branches and functions inlined. Knows no operator but the
// few that are gone after the import.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "headway/graph.h"
#include "headway/onnx.h"
#include "runtime/onnx/external_data.h"
#include "runtime/onnx/functions.h"
#include "runtime/onnx/node_order.h"
#include "runtime/onnx/read_tensor.h"
#include "runtime/onnx/scope.h"

namespace headway::importer {

class GraphBuilder {
 public:
  struct Source {
    const onnx::ModelProto& model;
    const SplitModel& split;
    std::shared_ptr<const MappedFile> file;  ///< that `split` shows, to be shared; null: copy
    std::string model_path;                  ///< beside which external data lies; empty: nowhere
    const ImportLimits& limits;
  };
  /// `source` must outlive the builder; the graph it makes needs neither.
  explicit GraphBuilder(const Source& source);

  /// To be called once.
  Graph build();
  std::size_t weight_bytes() const { return weight_bytes_; }
  std::size_t mapped_bytes() const { return mapped_bytes_; }

 private:
  /// A node, its resolved attributes and the scope it stands in.
  struct Place {
    const onnx::NodeProto& node;
    const AttributeMap& attributes;
    Scope* scope;
    std::string name;  ///< prefix and all; never empty
  };

  void add_initializers(const onnx::GraphProto& graph, Scope* scope, bool split);
  void add_inputs(const onnx::GraphProto& graph, Scope* scope);
  void add_nodes(const Nodes& nodes, Scope* scope);
  void add_node(const onnx::NodeProto& node, std::vector<ValueId> inputs, Scope* scope);
  void add_operator(const Place& place, std::vector<ValueId> inputs);
  void add_constant_node(const Place& place);
  void add_call(const Place& place, const Function& function, const std::vector<ValueId>& inputs);
  void add_if(const Place& place, ValueId condition);
  std::vector<ValueId> add_branch(const Place& place, const char* branch, const Guard& guard);
  template <class Read>
  ValueId add_constant(const std::string& name, const void* source, const Read& read);

  const Source& source_;
  const Functions functions_;
  ExternalFiles external_;
  Graph graph_;
  int depth_ = 0;  // of branches and calls
  /// Constants of bodies and branches by what they were read from: a body is read as often as it is called.
  std::unordered_map<const void*, std::shared_ptr<const Tensor>> shared_constants_;
  std::size_t weight_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace headway::importer
