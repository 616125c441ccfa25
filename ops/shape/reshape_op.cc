// Reshape: the same elements in row-major order under other dims, always a copy. Knows no element type.
#include "ops/operators.h"

namespace headway {
namespace {

/// The requested dims with 0 taken from the input and one −1 inferred.
Dims resolve(const Dims& from, const std::vector<std::int64_t>& wanted) {
  Dims dims;
  int inferred = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::int64_t dim = wanted[i];
    require(dim >= -1, "Reshape dims[", i, "] is ", dim, ", expected -1 or more");
    if (dim == 0) {
      require(static_cast<int>(i) < from.rank(), "Reshape dims[", i, "] is 0 but the input has rank ", from.rank());
      dim = from[static_cast<int>(i)];
    }
    if (dim == -1) {
      require(inferred < 0, "Reshape dims has -1 at ", inferred, " and at ", i, ", expected one at most");
      inferred = static_cast<int>(i);
    } else {
      known *= dim;
    }
    dims.push_back(dim);
  }
  const std::int64_t count = element_count(from);
  if (inferred >= 0) {
    require(known != 0 && count % known == 0, "Reshape of ", from, " cannot infer dims[", inferred, "]: ", count,
            " elements over ", known);
    dims[inferred] = count / known;
  }
  require(element_count(dims) == count, "Reshape of ", from, " with ", count, " elements to ", dims, " with ",
          element_count(dims));
  return dims;
}

class ReshapePlan : public NodePlan {
 public:
  void run(const RunContext&, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    copy(inputs[0].reshaped(outputs[0].dims), outputs[0]);
  }
};

class ReshapeOp : public Operator {
 public:
  std::string_view name() const override { return "Reshape"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    check_inputs("Reshape", node, 1, 1);
    return {{node.inputs[0].type, resolve(node.inputs[0].dims, node.attributes.integers("dims"))}};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override {
    return std::make_unique<ReshapePlan>();
  }
};

}  // namespace

std::unique_ptr<Operator> make_reshape_op() { return std::make_unique<ReshapeOp>(); }

}  // namespace headway
