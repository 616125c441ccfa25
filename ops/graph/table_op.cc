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
  std::vector<TensorInfo> infer(const NodeContext& node) const override { return functions_.infer(name_, node); }
  std::vector<Tensor> known_values(const NodeContext& node) const override {
    return functions_.known_values ? functions_.known_values(node) : std::vector<Tensor>();
  }
  int aliased_input(const NodeContext& node) const override {
    return functions_.aliased_input ? functions_.aliased_input(node) : -1;
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

std::vector<std::int64_t> known_integers(const char* op, const NodeContext& node, std::size_t input, const char* what) {
  require(has_input(node, input), op, " input ", input, " (", what, ") is missing");
  if (input >= node.constants.size() || !node.constants[input]) {
    fail(ErrorCode::kUnsupported, op, " input ", input, " (", what,
         ") is computed from data at run time, expected to follow from the shapes");
  }
  const ConstTensorView& view = node.constants[input];
  check_type(op, node, input, {DataType::kI64, DataType::kI32});
  require(view.rank() <= 1, op, ' ', what, " has rank ", view.rank(), ", expected 0 or 1");
  std::vector<std::int64_t> values(static_cast<std::size_t>(view.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = view.type == DataType::kI64 ? view.as<std::int64_t>()[i] : view.as<std::int32_t>()[i];
  }
  return values;
}

std::vector<std::int64_t> integers_of(const char* op, const NodeContext& node, std::size_t input, const char* what,
                                      bool* given) {
  const bool as_input = has_input(node, input);
  if (given != nullptr) *given = as_input || node.attributes.has(what);
  return as_input ? known_integers(op, node, input, what) : node.attributes.integers(what);
}

std::vector<int> normalised_axes(const char* op, const std::vector<std::int64_t>& axes, int rank) {
  std::vector<int> result;
  std::uint32_t seen = 0;
  for (const std::int64_t axis : axes) {
    const int at = normalised_axis(op, axis, rank);
    require((seen >> at & 1u) == 0, op, " names axis ", at, " twice, expected once");
    seen |= 1u << at;
    result.push_back(at);
  }
  return result;
}

std::int64_t integer_at_run(const char* op, const ConstTensorView& view, const char* what) {
  require(view.count() == 1, op, ' ', what, " has ", view.count(), " elements, expected 1");
  return visit_type(view.type, [&](auto kind) {
    using T = decltype(kind);
    return convert<std::int64_t>(*view.as<T>());
  });
}

void check_type(const char* op, const NodeContext& node, std::size_t input, std::initializer_list<DataType> allowed) {
  const DataType type = node.inputs[input].type;
  std::string names;
  for (const DataType other : allowed) {
    if (other == type) return;
    names += names.empty() ? type_name(other) : std::string(", ") + type_name(other);
  }
  require(false, op, " input ", input, " is ", type_name(type), ", expected ", allowed.size() == 1 ? "" : "one of ",
          names);
}

void check_same_type(const char* op, const NodeContext& node, std::size_t a, std::size_t b) {
  require(node.inputs[a].type == node.inputs[b].type, op, " inputs ", a, " and ", b, " are ",
          type_name(node.inputs[a].type), " and ", type_name(node.inputs[b].type), ", expected equal types");
}

}  // namespace headway
