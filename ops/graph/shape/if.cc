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

  std::vector<ValueInfo> infer(const InferContext& node) const override {
    require(node.inputs.size() == 3, "If has ", node.inputs.size(), " inputs, expected condition, then, else");
    check_outputs("If", node, 1);
    const ValueInfo& condition = node.inputs[0];
    require(condition.present, "If input 0 is missing");
    check_type("If", node, 0, {DataType::kBool});
    check_one_element("If", node, 0, "condition");
    if (!node.constants.empty() && node.constants[0]) return {node.inputs[holds(node.constants[0]) ? kThen : kElse]};
    const ValueInfo& a = node.inputs[kThen];
    const ValueInfo& b = node.inputs[kElse];
    if (!node.is_final()) {
      // The condition may be known by the time that a shape is; equal branches do not wait for it.
      ValueInfo out{.type = a.type == b.type ? a.type : std::nullopt,
                    .dims = a.dims == b.dims ? a.dims : std::nullopt,
                    .elements = {}};
      return {out};
    }
    require(a.present && b.present, "If input ", a.present ? kElse : kThen, " is missing");
    if (a.type != b.type || a.dims != b.dims) {
      fail(ErrorCode::kUnsupported, "If picks ", headway::type_name(*a.type), ' ', *a.dims, " or ",
           headway::type_name(*b.type), ' ', *b.dims, " by a condition that only a run knows, which is not supported");
    }
    return {like(a)};
  }

  int aliased_input(const NodeContext& node, std::span<const TensorInfo>) const override {
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
