// Inference, planning and early evaluation of one node.
#include "runtime/exec/planned_node.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace headway {
namespace {

// Shape arithmetic and masks are far below; an expansion beyond it would cost more memory than its run costs time.
constexpr std::size_t kSmallBytes = std::size_t{16} << 20;

// Of the bytes of the constants: room for a transpose and a wider type of each, not for a chain that doubles.
constexpr std::size_t kMaxGrowth = 4;
// All small results that are kept at one time, where there are hardly any constants to compare with.
constexpr std::size_t kSmallSumBytes = 3 * kSmallBytes;
// Shapes and numbers, which inference cannot do without: never more than the nodes of the graph take.
constexpr std::size_t kTinyBytes = 1024;

/// True when results may be kept: tiny; or small, or not much larger than what they are made of, and all together not
/// much larger than the constants of the graph nor beyond the budget.
bool worth_keeping(const NodeCase& node, std::span<const TensorInfo> outputs) {
  std::size_t made = 0;
  std::size_t from = 0;
  for (const TensorInfo& info : outputs) {
    if (!info.present) continue;
    const std::size_t bytes = tensor_bytes(info.type, info.dims);
    if (bytes > kSmallBytes * 1024) return false;  // also keeps the sum from overflowing
    made += bytes;
  }
  for (const TensorInfo& info : node.inputs) {
    if (info.present) from += tensor_bytes(info.type, info.dims);
  }
  if (made <= kTinyBytes) return true;
  if (made > kSmallBytes && made / 2 > from) return false;
  const std::size_t most = std::max(kSmallSumBytes, kMaxGrowth * node.known.constant_bytes());
  return node.known.made_bytes() + made <= most && node.known.budget().fits(made);
}

bool all_known(const NodeCase& node) {
  bool any = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].present) continue;
    if (!node.constants[i]) return false;
    any = true;
  }
  return any;
}

std::vector<ConstTensorView> aligned_constants(const NodeCase& node, AlignedViews* views) {
  std::vector<ConstTensorView> constants;
  for (ValueId value : node.node.inputs) constants.push_back(views->view(value));
  return constants;
}

std::unique_ptr<NodePlan> plan_aligned(const NodeCase& node, std::span<const ConstTensorView> constants,
                                       std::span<const TensorInfo> outputs) {
  return name_errors(node.node, [&] {
    const NodeContext context{node.node.attributes, node.inputs, constants, static_cast<int>(outputs.size()),
                              node.fixed,           node.sibling};
    std::unique_ptr<NodePlan> plan = node.op.plan(context, outputs);
    if (plan == nullptr) fail(ErrorCode::kInternal, "operator made no plan");
    return plan;
  });
}

std::vector<std::optional<Tensor>> run_now(const NodeCase& node, std::span<const TensorInfo> outputs) {
  std::vector<std::optional<Tensor>> results;
  std::vector<TensorView> views;
  for (const TensorInfo& info : outputs) {
    results.emplace_back();
    if (info.present) results.back().emplace(info.type, info.dims);
    views.push_back(info.present ? results.back()->view() : TensorView());
  }
  AlignedViews aligned(node.known);
  const std::vector<ConstTensorView> constants = aligned_constants(node, &aligned);
  const std::unique_ptr<NodePlan> plan = plan_aligned(node, constants, outputs);
  if (has_no_elements(outputs)) return results;
  const Threads threads = Threads::serial();
  name_errors(node.node, [&] {
    MemoryCharge charge(node.known.shared_budget());
    charge.add("the workspace of a node that is run before the first input", plan->workspace_bytes(1));
    const AlignedBuffer workspace(plan->workspace_bytes(threads.workers()));
    plan->run({threads, workspace.data(), nullptr}, constants, views);
  });
  return results;
}

/// A list of numbers as the tensor it is.
Tensor tensor_of(const TensorInfo& info, const DimList& elements) {
  require(static_cast<std::int64_t>(elements.size()) == element_count(info.dims), "operator knows ", elements.size(),
          " elements of ", info.dims);
  Tensor tensor(info.type, info.dims);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::int64_t number = elements[i].factor;
    if (info.type == DataType::kI64) {
      tensor.data<std::int64_t>()[i] = number;
    } else if (info.type == DataType::kI32) {
      tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(number);
    } else {
      tensor.data<bool>()[i] = number != 0;
    }
  }
  return tensor;
}

bool is_known(const ValueInfo& output) {
  const bool whole = output.type == DataType::kI64 || output.type == DataType::kI32 || output.type == DataType::kBool;
  return output.present && whole && output.elements && all_numbers(*output.elements);
}

}  // namespace

bool has_no_elements(std::span<const TensorInfo> outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const TensorInfo& info) { return !info.present || element_count(info.dims) == 0; });
}

NodeCase make_case(const Node& node, const Operator& op, const ConstantTable& known, std::vector<TensorInfo> inputs) {
  NodeCase one{node, op, known, std::move(inputs), {}, 0, nullptr};
  for (ValueId value : node.inputs) one.constants.push_back(known.unaligned_view(value));
  return one;
}

NodeOutputs infer_node(const NodeCase& node) {
  std::vector<ValueInfo> inputs;
  for (const TensorInfo& input : node.inputs) inputs.push_back(value_info(input));
  const std::vector<ValueInfo> outputs = infer_node(
      node.node, node.op, {node.node.attributes, inputs, node.constants, static_cast<int>(node.node.outputs.size())});
  NodeOutputs result;
  for (const ValueInfo& output : outputs) result.infos.push_back(tensor_info(output));
  if (std::all_of(outputs.begin(), outputs.end(), is_known)) {
    name_errors(node.node, [&] {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        result.values.emplace_back(tensor_of(result.infos[i], *outputs[i].elements));
      }
    });
  }
  return result;
}

std::unique_ptr<NodePlan> plan_node(const NodeCase& node, std::span<const TensorInfo> outputs) {
  AlignedViews aligned(node.known);
  std::vector<ConstTensorView> constants = node.constants;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (node.op.planning_use(i) == InputUse::kElements) constants[i] = aligned.view(node.node.inputs[i]);
  }
  return plan_aligned(node, constants, outputs);
}

std::vector<std::optional<Tensor>> evaluate_node(const NodeCase& node, NodeOutputs outputs) {
  if (!all_known(node)) return std::move(outputs.values);
  return worth_keeping(node, outputs.infos) ? run_now(node, outputs.infos) : std::vector<std::optional<Tensor>>();
}

int aliased_input(const NodeCase& node, std::span<const TensorInfo> outputs) {
  if (outputs.size() != 1 || !outputs[0].present) return -1;
  const int viewed = name_errors(node.node, [&] { return node.op.aliased_input(node.context(), outputs); });
  if (viewed < 0) return -1;
  // A view of too few elements would be read past its end.
  const bool exists = viewed < static_cast<int>(node.inputs.size()) && node.inputs[viewed].present;
  if (!exists || node.inputs[viewed].type != outputs[0].type ||
      element_count(node.inputs[viewed].dims) != element_count(outputs[0].dims)) {
    fail(ErrorCode::kInternal, described(node.node), " shows input ", viewed, " as ", outputs[0].dims,
         ", which are not its elements");
  }
  return viewed;
}

}  // namespace headway
