// Transpose: axis i of the result is axis perm[i] of the input, copied once; a view where no axis longer than 1 changes
// its place. Knows no element type.
#include "ops/base/parallel_copy.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// The attribute perm, or the axes reversed.
std::vector<int> permutation(const char* op, const Attributes& attributes, std::size_t size) {
  const auto rank = static_cast<std::int64_t>(size);
  std::vector<std::int64_t> given = attributes.integers("perm");
  if (given.empty()) {
    for (std::int64_t a = rank - 1; a >= 0; --a) given.push_back(a);
  }
  require(given.size() == size, op, " perm has ", given.size(), " axes, expected rank ", rank);
  for (const std::int64_t axis : given) {
    require(axis >= 0 && axis < rank, op, " perm holds ", axis, ", expected 0 to ", rank - 1);
  }
  std::vector<int> perm(given.begin(), given.end());
  std::uint32_t seen = 0;
  for (const int axis : perm) {
    require((seen >> axis & 1u) == 0, op, " perm holds ", axis, " twice");
    seen |= 1u << axis;
  }
  return perm;
}

std::vector<int> permutation(const char* op, const NodeContext& node) {
  return permutation(op, node.attributes, static_cast<std::size_t>(node.inputs[0].dims.rank()));
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  ValueInfo out{.type = node.inputs[0].type, .dims = {}, .elements = {}};
  if (!node.inputs[0].dims) {
    node.attributes.integers("perm");
    return {out};
  }
  out.dims.emplace();
  for (const int axis : permutation(op, node.attributes, node.inputs[0].dims->size())) {
    out.dims->push_back((*node.inputs[0].dims)[static_cast<std::size_t>(axis)]);
  }
  if (out.rank() <= 1) out.elements = node.inputs[0].elements;
  return {out};
}

int viewed(const NodeContext& node, const Infos&) {
  int last = -1;
  for (const int axis : permutation("Transpose", node)) {
    if (node.inputs[0].dims[axis] == 1) continue;
    if (axis < last) return -1;
    last = axis;
  }
  return 0;
}

std::unique_ptr<NodePlan> plan(const char* op, const NodeContext& node, const Infos&) {
  return make_plan([perm = permutation(op, node)](const RunContext& context, Inputs inputs, Outputs outputs) {
    ConstTensorView from = inputs[0];
    for (std::size_t a = 0; a < perm.size(); ++a) {
      from.dims[static_cast<int>(a)] = inputs[0].dims[perm[a]];
      from.strides[static_cast<int>(a)] = inputs[0].strides[perm[a]];
    }
    parallel_copy(from, outputs[0], context.threads);
  });
}

}  // namespace

void add_transpose_op(Registry* registry) {
  registry->add(make_op("Transpose", {.infer = infer, .plan = plan, .aliased_input = viewed}));
}

}  // namespace headway
