// Operators that give the same elements in the same order other dims: Reshape, Flatten, Squeeze, Unsqueeze, Identity,
// Dropout at inference. Decides the dims; the session makes views of them, and where it cannot, they copy.
#include <array>

#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The requested dims with one −1 inferred; 0 takes the input's dim unless `allow_zero`.
Dims resolve(const char* op, const Dims& from, const std::vector<std::int64_t>& wanted, bool allow_zero) {
  Dims dims;
  int inferred = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::int64_t dim = wanted[i];
    require(dim >= -1, op, " dims[", i, "] is ", dim, ", expected -1 or more");
    if (dim == 0 && !allow_zero) {
      require(static_cast<int>(i) < from.rank(), op, " dims[", i, "] is 0 but the input has rank ", from.rank());
      dim = from[static_cast<int>(i)];
    }
    if (dim == -1) {
      require(inferred < 0, op, " dims has -1 at ", inferred, " and at ", i, ", expected one at most");
      inferred = static_cast<int>(i);
    } else {
      require(!__builtin_mul_overflow(known, dim, &known), op, " dims up to dims[", i, "] do not fit 63 bits");
    }
    dims.push_back(dim);
  }
  const std::int64_t count = element_count(from);
  if (inferred >= 0) {
    require(known != 0 && count % known == 0, op, " of ", from, " cannot infer dims[", inferred, "]: ", count,
            " elements over ", known);
    dims[inferred] = count / known;
  }
  require(element_count(dims) == count, op, " of ", from, " with ", count, " elements to ", dims, " with ",
          element_count(dims));
  return dims;
}

/// The shape is the second input, or the attribute dims.
Dims reshaped(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 2);
  const auto wanted = has_input(node, 1) ? known_integers(op, node, 1, "shape") : node.attributes.integers("dims");
  return resolve(op, node.inputs[0].dims, wanted, node.attributes.integer("allowzero", 0) != 0);
}

Dims flattened(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 1);
  const Dims& dims = node.inputs[0].dims;
  std::int64_t axis = node.attributes.integer("axis", 1);
  require(axis >= -dims.rank() && axis <= dims.rank(), op, " axis is ", axis, ", expected ", -dims.rank(), " to ",
          dims.rank());
  if (axis < 0) axis += dims.rank();
  const std::span<const std::int64_t> all(dims.begin(), static_cast<std::size_t>(dims.rank()));
  const auto split = static_cast<std::size_t>(axis);
  return {element_count(Dims(all.first(split))), element_count(Dims(all.subspan(split)))};
}

Dims squeezed(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 2);
  const Dims& from = node.inputs[0].dims;
  bool given = false;
  const std::vector<std::int64_t> named = integers_of(op, node, 1, "axes", &given);
  std::array<bool, kMaxRank> drop{};
  for (int a = 0; a < from.rank() && !given; ++a) drop[static_cast<std::size_t>(a)] = from[a] == 1;
  for (const int a : normalised_axes(op, named, from.rank())) {
    require(from[a] == 1, op, " axis ", a, " of ", from, " is ", from[a], ", expected 1");
    drop[static_cast<std::size_t>(a)] = true;
  }
  Dims dims;
  for (int a = 0; a < from.rank(); ++a) {
    if (!drop[static_cast<std::size_t>(a)]) dims.push_back(from[a]);
  }
  return dims;
}

/// Axes count in the result.
Dims unsqueezed(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 2);
  const Dims& from = node.inputs[0].dims;
  const std::vector<std::int64_t> named = integers_of(op, node, 1, "axes");
  const std::size_t rank = static_cast<std::size_t>(from.rank()) + named.size();
  require(rank <= kMaxRank, op, " gives rank ", rank, ", at most ", kMaxRank, " is supported");
  std::array<bool, kMaxRank> unit{};
  for (const int a : normalised_axes(op, named, static_cast<int>(rank))) unit[static_cast<std::size_t>(a)] = true;
  Dims dims;
  int next = 0;
  for (std::size_t a = 0; a < rank; ++a) dims.push_back(unit[a] ? 1 : from[next++]);
  return dims;
}

Dims same(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 1);
  return node.inputs[0].dims;
}

OpFunctions view(Dims (*dims_of)(const char*, const NodeContext&)) {
  return {.infer = [dims_of](const char* op, const NodeContext& node) -> Infos {
            return {{node.inputs.empty() ? DataType::kF32 : node.inputs[0].type, dims_of(op, node)}};
          },
          .plan =
              [](const char*, const NodeContext&, const Infos&) {
                return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
                  parallel_copy(inputs[0].reshaped(outputs[0].dims), outputs[0], context.threads);
                });
              },
          .aliased_input = [](const NodeContext&) { return 0; }};
}

/// The flag is a bool of one element; the ratio beside it means nothing at inference.
bool is_training(const char* op, const NodeContext& node) {
  check_type(op, node, 2, {DataType::kBool});
  require(element_count(node.inputs[2].dims) == 1, op, " training_mode has dims ", node.inputs[2].dims,
          ", expected one element");
  if (node.constants.size() <= 2 || !node.constants[2]) {
    fail(ErrorCode::kUnsupported, op, " input 2 (training_mode) is computed at run time, expected a constant");
  }
  return node.constants[2].as<bool>()[0];
}

Infos infer_dropout(const char* op, const NodeContext& node) {
  check_inputs(op, node, 1, 3);
  if (has_input(node, 2) && is_training(op, node)) {
    fail(ErrorCode::kUnsupported, op, " training_mode is true, expected false: nothing is dropped at inference");
  }
  Infos outputs{node.inputs[0]};
  if (node.num_outputs > 1) outputs.push_back({DataType::kBool, node.inputs[0].dims});
  return outputs;
}

std::unique_ptr<NodePlan> plan_dropout(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    parallel_copy(inputs[0], outputs[0], context.threads);
    if (outputs.size() > 1 && outputs[1]) std::fill_n(outputs[1].as<bool>(), outputs[1].count(), true);
  });
}

}  // namespace

void add_reshape_ops(Registry* registry) {
  registry->add(make_op("Reshape", view(reshaped)));
  registry->add(make_op("Flatten", view(flattened)));
  registry->add(make_op("Squeeze", view(squeezed)));
  registry->add(make_op("Unsqueeze", view(unsqueezed)));
  registry->add(make_op("Identity", view(same)));
  registry->add(
      make_op("Dropout", {.infer = infer_dropout, .plan = plan_dropout, .aliased_input = [](const NodeContext& n) {
                            return n.num_outputs == 1 ? 0 : -1;
                          }}));
}

}  // namespace headway
