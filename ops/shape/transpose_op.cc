// Transpose: axis i of the result is axis perm[i] of the input, copied. Knows no element type.
#include "ops/operators.h"

namespace headway {
namespace {

/// The attribute perm, or the axes reversed.
std::vector<int> permutation(const NodeContext& node) {
  const int rank = node.inputs[0].dims.rank();
  const std::vector<std::int64_t> given = node.attributes.integers("perm");
  std::vector<int> perm;
  if (given.empty()) {
    for (int a = rank - 1; a >= 0; --a) perm.push_back(a);
    return perm;
  }
  require(given.size() == static_cast<std::size_t>(rank), "Transpose perm has ", given.size(), " axes, expected rank ",
          rank);
  std::vector<bool> seen(given.size());
  for (const std::int64_t axis : given) {
    require(axis >= 0 && axis < rank, "Transpose perm holds ", axis, ", expected 0 to ", rank - 1);
    require(!seen[static_cast<std::size_t>(axis)], "Transpose perm holds ", axis, " twice");
    seen[static_cast<std::size_t>(axis)] = true;
    perm.push_back(static_cast<int>(axis));
  }
  return perm;
}

class TransposePlan : public NodePlan {
 public:
  explicit TransposePlan(std::vector<int> perm) : perm_(std::move(perm)) {}
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    ConstTensorView from = inputs[0];
    for (int a = 0; a < from.rank(); ++a) {
      from.dims[a] = inputs[0].dims[perm_[static_cast<std::size_t>(a)]];
      from.strides[a] = inputs[0].strides[perm_[static_cast<std::size_t>(a)]];
    }
    const TensorView& to = outputs[0];
    if (from.rank() < 2) return copy(from, to);
    context.threads.parallel_for(from.dims[0],
                                 [&](std::int64_t i, int) { copy(from.selected(0, i), to.selected(0, i)); });
  }

 private:
  std::vector<int> perm_;
};

class TransposeOp : public Operator {
 public:
  std::string_view name() const override { return "Transpose"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    check_inputs("Transpose", node, 1, 1);
    Dims dims;
    for (const int axis : permutation(node)) dims.push_back(node.inputs[0].dims[axis]);
    return {{node.inputs[0].type, dims}};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<TransposePlan>(permutation(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_transpose_op() { return std::make_unique<TransposeOp>(); }

}  // namespace headway
