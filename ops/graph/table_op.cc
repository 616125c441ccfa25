// The one class behind all table entries, and the look-ups of a node's integers.
#include "ops/graph/table_op.h"

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

class FunctionOp final : public Operator {
 public:
  FunctionOp(const char* op_name, OpFunctions functions) : name_(op_name), functions_(std::move(functions)) {}
  std::string_view name() const override { return name_; }
  Inferred infer(const InferContext& node) const override {
    Inferred outputs = functions_.infer(name_, node);
    check_outputs(name_, node, static_cast<int>(outputs.size()));
    return outputs;
  }
  int aliased_input(const NodeContext& node, std::span<const TensorInfo> outputs) const override {
    return functions_.aliased_input ? functions_.aliased_input(node, Infos(outputs.begin(), outputs.end())) : -1;
  }
  InputUse planning_use(std::size_t input) const override {
    return input == 0 ? functions_.first_input_planning : InputUse::kElements;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo> outputs) const override {
    return functions_.plan(name_, node, Infos(outputs.begin(), outputs.end()));
  }

 private:
  const char* name_;
  OpFunctions functions_;
};

}  // namespace

std::unique_ptr<Operator> make_op(const char* name, OpFunctions functions) {
  return std::make_unique<FunctionOp>(name, std::move(functions));
}

std::vector<std::int64_t> known_integers(const NodeContext& node, std::size_t input) {
  const ConstTensorView& view = node.constants[input];
  std::vector<std::int64_t> values(static_cast<std::size_t>(view.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = view.type == DataType::kI64 ? view.as<std::int64_t>()[i] : view.as<std::int32_t>()[i];
  }
  return values;
}

std::vector<std::int64_t> integers_of(const NodeContext& node, std::size_t input, const char* attribute, bool* given) {
  const bool as_input = has_input(node, input);
  if (given != nullptr) *given = as_input || node.attributes.has(attribute);
  return as_input ? known_integers(node, input) : node.attributes.integers(attribute);
}

std::int64_t integer_at_run(const char* op, const ConstTensorView& view, const char* what) {
  require(view.count() == 1, op, ' ', what, " has ", view.count(), " elements, expected 1");
  return visit_type(view.type, [&](auto kind) {
    using T = decltype(kind);
    return convert<std::int64_t>(*view.as<T>());
  });
}

}  // namespace headway
