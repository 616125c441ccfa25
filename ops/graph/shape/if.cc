// If, as the importer leaves it: condition, the value of one branch, the value of the other. A view where the condition
// is known when the shape is planned; else both branches have run and the one that holds is copied.
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::size_t kThen = 1;
constexpr std::size_t kElse = 2;

bool holds(const ConstTensorView& condition) { return *condition.data != std::byte{0}; }

class IfPlan : public NodePlan {
 public:
  void run(const RunContext&, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    copy_elements(inputs[holds(inputs[0]) ? kThen : kElse], outputs[0]);
  }
};

class IfOp : public Operator {
 public:
  std::string_view name() const override { return "If"; }

  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    require(node.inputs.size() == 3, "If has ", node.inputs.size(), " inputs, expected condition, then, else");
    const TensorInfo& condition = node.inputs[0];
    require(condition.type == DataType::kBool && element_count(condition.dims) == 1, "If has a condition of ",
            headway::type_name(condition.type), ' ', condition.dims, ", expected one bool");
    const int chosen = aliased_input(node);
    if (chosen >= 0) return {node.inputs[static_cast<std::size_t>(chosen)]};
    const TensorInfo& a = node.inputs[kThen];
    const TensorInfo& b = node.inputs[kElse];
    if (a.type != b.type || !(a.dims == b.dims)) {
      fail(ErrorCode::kUnsupported, "If picks ", headway::type_name(a.type), ' ', a.dims, " or ",
           headway::type_name(b.type), ' ', b.dims, " by a condition that only a run knows, which is not supported");
    }
    return {a};
  }

  int aliased_input(const NodeContext& node) const override {
    if (node.constants.empty() || !node.constants[0]) return -1;
    return static_cast<int>(holds(node.constants[0]) ? kThen : kElse);
  }

  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override {
    return std::make_unique<IfPlan>();
  }
};

}  // namespace

std::unique_ptr<Operator> make_if_op() { return std::make_unique<IfOp>(); }

}  // namespace headway
