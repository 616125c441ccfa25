// Operators as entries of a table: a name and the functions that make it up, instead of two classes each; and how nodes
// hold their integers, as attributes or as inputs. Knows no operator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/operator.h"

namespace headway {

using Infos = std::vector<TensorInfo>;
using Inputs = std::span<const ConstTensorView>;
using Outputs = std::span<const TensorView>;

/// The functions get the operator's name for their messages. The last two may be empty.
struct OpFunctions {
  std::function<Infos(const char* op, const NodeContext& node)> infer;
  std::function<std::unique_ptr<NodePlan>(const char* op, const NodeContext& node, const Infos& outputs)> plan;
  std::function<std::vector<Tensor>(const NodeContext& node)> known_values = {};
  std::function<int(const NodeContext& node)> aliased_input = {};
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

inline bool has_input(const NodeContext& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i].present;
}

/// The integers of an input that must be known when a shape is planned: i64 or i32, rank 0 or 1. `what` names them in
/// messages; kUnsupported when they are computed from data at run time.
std::vector<std::int64_t> known_integers(const char* op, const NodeContext& node, std::size_t input, const char* what);

/// The same from the input where it is given, else from the attribute, else empty. `given` tells which it was.
std::vector<std::int64_t> integers_of(const char* op, const NodeContext& node, std::size_t input, const char* what,
                                      bool* given = nullptr);

/// −1 counts from the back, no axis twice. Throws kInvalidArgument naming the axis and the rank.
std::vector<int> normalised_axes(const char* op, const std::vector<std::int64_t>& axes, int rank);

/// One number of a tensor of one element, read when a plan is run. Throws kInvalidArgument when there are more.
std::int64_t integer_at_run(const char* op, const ConstTensorView& view, const char* what);

/// Throws kInvalidArgument unless the type of the input is one of the list.
void check_type(const char* op, const NodeContext& node, std::size_t input, std::initializer_list<DataType> allowed);
/// Throws kInvalidArgument unless both inputs have the same type.
void check_same_type(const char* op, const NodeContext& node, std::size_t a, std::size_t b);

inline constexpr std::initializer_list<DataType> kFloatTypes = {DataType::kF32, DataType::kF64, DataType::kF16,
                                                                DataType::kBF16};
inline constexpr std::initializer_list<DataType> kNumericTypes = {DataType::kF32,  DataType::kF64, DataType::kF16,
                                                                  DataType::kBF16, DataType::kI8,  DataType::kU8,
                                                                  DataType::kI32,  DataType::kI64};

}  // namespace headway
