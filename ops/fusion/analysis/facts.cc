// Look-up, the facts of inputs and constants, and the operators asked.
#include "ops/fusion/analysis/facts.h"

#include "ops/base/numeric.h"
#include "ops/fusion/analysis/constant_view.h"

namespace headway::fusion {
namespace {

Fact of_constant(const Tensor& tensor) {
  Fact fact;
  fact.type = tensor.type();
  fact.dims = dim_list(tensor.dims());
  fact.elements = constant_elements(tensor);
  return fact;
}

}  // namespace

std::optional<DimList> constant_elements(const Tensor& tensor) {
  const bool whole =
      tensor.type() == DataType::kI64 || tensor.type() == DataType::kI32 || tensor.type() == DataType::kBool;
  if (!whole || tensor.dims().rank() > 1 || tensor.count() > kMaxElements) return std::nullopt;
  DimList elements;
  const ConstTensorView view = tensor.view();
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (tensor.type() == DataType::kBool) {
      elements.emplace_back(view.data[i] != std::byte{0} ? 1 : 0);
    } else if (tensor.type() == DataType::kI32) {
      elements.emplace_back(view.as<std::int32_t>()[i]);
    } else {
      elements.emplace_back(view.as<std::int64_t>()[i]);
    }
  }
  return elements;
}

std::optional<double> constant_number(const Tensor& tensor) {
  if (tensor.count() != 1 || tensor.type() == DataType::kBool) return std::nullopt;
  return visit_type(tensor.type(), [&](auto one) {
    using T = decltype(one);
    if constexpr (std::is_same_v<T, bool>) {
      return std::optional<double>();
    } else {
      return std::optional<double>(static_cast<double>(widen(tensor.view().as<T>()[0])));
    }
  });
}

Facts::Facts(const Registry& registry, const Draft& draft)
    : registry_(registry), draft_(draft), given_nodes_(draft.num_nodes()) {
  facts_.resize(static_cast<std::size_t>(draft.num_values()));
  for (const GraphInput& input : draft.inputs()) {
    Fact fact;
    fact.type = input.type;
    fact.dims.emplace();
    for (const SymbolicDim& dim : input.dims) {
      const auto* number = std::get_if<std::int64_t>(&dim);
      fact.dims->push_back(number != nullptr ? Dim(*number) : unknowns_.named("$" + std::get<std::string>(dim), true));
    }
    facts_[static_cast<std::size_t>(input.value)] = std::move(fact);
  }
}

const Fact& Facts::of(ValueId value) {
  static const Fact kAbsent{.type = {}, .dims = {}, .elements = {}, .present = false};
  if (value == kNoValue) return kAbsent;
  const auto at = static_cast<std::size_t>(value);
  if (facts_.size() <= at) facts_.resize(static_cast<std::size_t>(draft_.num_values()));
  if (const Tensor* constant = draft_.constant(value)) {
    if (!facts_[at]) facts_[at] = of_constant(*constant);
    return *facts_[at];
  }
  if (!facts_[at]) {
    if (const int node = draft_.producer(value); node >= 0) derive(node);
    if (!facts_[at]) facts_[at] = Fact();
  }
  return *facts_[at];
}

std::vector<Fact> Facts::inferred(int index) {
  const Node& node = draft_.node(index);
  const Operator* op = registry_.find(node.op);
  if (op == nullptr) return {};
  std::vector<Fact> inputs;
  std::vector<ConstTensorView> constants;
  for (const ValueId input : node.inputs) {
    const Tensor* constant = draft_.constant(input);
    inputs.push_back(of(input));
    constants.push_back(constant != nullptr ? unaligned_view(*constant) : ConstTensorView());
  }
  const InferContext context{node.attributes, inputs,         constants, static_cast<int>(node.outputs.size()),
                             &unknowns_,      node.outputs[0]};
  try {
    return infer_node(node, *op, context);
  } catch (const Error&) {
    // What is wrong with a node of the graph is for the caller; a made one is weighed when shapes are known.
    if (index < given_nodes_) throw;
    return {};
  }
}

void Facts::derive(int node) {
  std::vector<Fact> outputs = inferred(node);
  const Node& made = draft_.node(node);
  outputs.resize(made.outputs.size());
  facts_.resize(static_cast<std::size_t>(draft_.num_values()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    name_elements(made.outputs[i], &outputs[i]);
    if (made.outputs[i] != kNoValue) facts_[static_cast<std::size_t>(made.outputs[i])] = std::move(outputs[i]);
  }
}

/// Short lists of integers that no rule reads are at least themselves.
void Facts::name_elements(ValueId value, Fact* fact) {
  if (fact->elements || !fact->dims || (fact->type != DataType::kI64 && fact->type != DataType::kI32)) return;
  if (fact->rank() > 1 || (fact->rank() == 1 && !(*fact->dims)[0].is_number())) return;
  const std::int64_t count = fact->rank() == 0 ? 1 : (*fact->dims)[0].factor;
  if (count < 0 || count > kMaxElements) return;
  fact->elements.emplace();
  for (std::int64_t i = 0; i < count; ++i) {
    fact->elements->push_back(unknowns_.named(std::to_string(value) + "e" + std::to_string(i), false));
  }
}

std::optional<Dim> Facts::dim(ValueId value, int axis) {
  const Fact& fact = of(value);
  if (axis < 0) axis += fact.rank();
  if (!fact.dims || axis < 0 || axis >= fact.rank()) return std::nullopt;
  return (*fact.dims)[static_cast<std::size_t>(axis)];
}

bool Facts::same_dims(ValueId a, ValueId b) {
  const std::optional<DimList> first = of(a).dims;
  return first && first == of(b).dims;
}

std::optional<double> Facts::scalar(ValueId value) const {
  const Tensor* constant = draft_.constant(value);
  return constant != nullptr ? constant_number(*constant) : std::nullopt;
}

}  // namespace headway::fusion
