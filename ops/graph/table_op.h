// Operators as entries of a table: a name and the functions that make it up, instead of two classes each; and how nodes
// hold their integers, as attributes or as inputs. Knows no operator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/operator.h"
#include "ops/graph/infer.h"

namespace headway {

using Infos = std::vector<TensorInfo>;
using Inputs = std::span<const ConstTensorView>;
using Outputs = std::span<const TensorView>;

/// The functions get the operator's name for their messages. aliased_input may be empty.
struct OpFunctions {
  std::function<Inferred(const char* op, const InferContext& node)> infer;
  std::function<std::unique_ptr<NodePlan>(const char* op, const NodeContext& node, const Infos& outputs)> plan;
  std::function<int(const NodeContext& node, const Infos& outputs)> aliased_input = {};
  InputUse first_input_planning = InputUse::kElements;  ///< planning_use() of input 0; of others kElements
};

std::unique_ptr<Operator> make_op(const char* name, OpFunctions functions);

/// A plan that is one function run(context, inputs, outputs) and perhaps workspace(workers).
template <class Run, class Workspace>
class FunctionPlan final : public NodePlan {
 public:
  FunctionPlan(Run run, Workspace workspace) : run_(std::move(run)), workspace_(std::move(workspace)) {}
  std::size_t workspace_bytes(int workers) const override { return workspace_(workers); }
  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override { run_(context, inputs, outputs); }

 private:
  Run run_;
  Workspace workspace_;
};

template <class Run, class Workspace>
std::unique_ptr<NodePlan> make_plan(Run run, Workspace workspace) {
  return std::make_unique<FunctionPlan<Run, Workspace>>(std::move(run), std::move(workspace));
}
template <class Run>
std::unique_ptr<NodePlan> make_plan(Run run) {
  return make_plan(std::move(run), [](int) { return std::size_t{0}; });
}

/// The integers of an input that the rule has seen to be known when a shape is planned: i64 or i32.
std::vector<std::int64_t> known_integers(const NodeContext& node, std::size_t input);
/// The same from the input where it is given, else from the attribute, else empty. `given` tells which it was.
std::vector<std::int64_t> integers_of(const NodeContext& node, std::size_t input, const char* attribute,
                                      bool* given = nullptr);

/// One number of a tensor of one element, read when a plan is run. Throws kInvalidArgument when there are more.
std::int64_t integer_at_run(const char* op, const ConstTensorView& view, const char* what);

}  // namespace headway
