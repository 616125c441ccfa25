// Inference, planning and early evaluation of one node.
#include "runtime/exec/planned_node.h"

#include <algorithm>

namespace headway {
namespace {

// Shape arithmetic and masks are far below; an expansion beyond it would cost more memory than its run costs time.
constexpr std::size_t kSmallBytes = std::size_t{16} << 20;

/// True when results may be kept: small, or not much larger than what they are made of.
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
  return made <= kSmallBytes || made / 2 <= from;
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

std::vector<std::optional<Tensor>> run_now(const NodeCase& node, std::span<const TensorInfo> outputs) {
  std::vector<std::optional<Tensor>> results;
  std::vector<TensorView> views;
  for (const TensorInfo& info : outputs) {
    results.emplace_back();
    if (info.present) results.back().emplace(info.type, info.dims);
    views.push_back(info.present ? results.back()->view() : TensorView());
  }
  const std::unique_ptr<NodePlan> plan = plan_node(node, outputs);
  const Threads threads = Threads::serial();
  const AlignedBuffer workspace(plan->workspace_bytes(threads.workers()));
  name_errors(node.node, [&] { plan->run({threads, workspace.data(), nullptr}, node.constants, views); });
  return results;
}

std::vector<std::optional<Tensor>> from_shapes(const NodeCase& node, std::span<const TensorInfo> outputs) {
  std::vector<Tensor> values = name_errors(node.node, [&] { return node.op.known_values(node.context()); });
  std::vector<std::optional<Tensor>> results;
  if (values.empty()) return results;
  if (values.size() != outputs.size()) {
    fail(ErrorCode::kInternal, "node '", node.node.name, "' (", node.node.op, ") knows ", values.size(),
         " values, expected ", outputs.size());
  }
  for (Tensor& value : values) results.emplace_back(std::move(value));
  return results;
}

}  // namespace

std::vector<TensorInfo> infer_node(const NodeCase& node) {
  return name_errors(node.node, [&] {
    std::vector<TensorInfo> outputs = node.op.infer(node.context());
    if (outputs.size() != node.node.outputs.size()) {
      fail(ErrorCode::kInternal, "operator inferred ", outputs.size(), " outputs, expected ", node.node.outputs.size());
    }
    for (const TensorInfo& output : outputs) {
      if (output.present) tensor_bytes(output.type, output.dims);
    }
    return outputs;
  });
}

std::unique_ptr<NodePlan> plan_node(const NodeCase& node, std::span<const TensorInfo> outputs) {
  return name_errors(node.node, [&] {
    std::unique_ptr<NodePlan> plan = node.op.plan(node.context(), outputs);
    if (plan == nullptr) fail(ErrorCode::kInternal, "operator made no plan");
    return plan;
  });
}

std::vector<std::optional<Tensor>> evaluate_node(const NodeCase& node, std::span<const TensorInfo> outputs) {
  if (!all_known(node)) return from_shapes(node, outputs);
  return worth_keeping(node, outputs) ? run_now(node, outputs) : std::vector<std::optional<Tensor>>();
}

int viewed_input(const NodeCase& node, std::span<const TensorInfo> outputs) {
  if (outputs.size() != 1 || !outputs[0].present) return -1;
  const int viewed = name_errors(node.node, [&] { return node.op.viewed_input(node.context()); });
  if (viewed < 0) return -1;
  // A view of too few elements would be read past its end.
  const bool exists = viewed < static_cast<int>(node.inputs.size()) && node.inputs[viewed].present;
  if (!exists || node.inputs[viewed].type != outputs[0].type ||
      element_count(node.inputs[viewed].dims) != element_count(outputs[0].dims)) {
    fail(ErrorCode::kInternal, "node '", node.node.name, "' (", node.node.op, ") shows input ", viewed, " as ",
         outputs[0].dims, ", which are not its elements");
  }
  return viewed;
}

}  // namespace headway
