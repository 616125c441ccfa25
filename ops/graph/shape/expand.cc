// Expand (broadcast to a shape that is an input) and Tile (repeat along axes), each one copy of a view with stride 0.
// Knows no element type.
#include "ops/base/parallel_copy.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

Infos infer_expand(const char* op, const NodeContext& node) {
  check_inputs(op, node, 2, 2);
  const Dims shape{std::span<const std::int64_t>(known_integers(op, node, 1, "shape"))};
  element_count(shape);
  return {{node.inputs[0].type, broadcast_dims(op, node.inputs[0].dims, shape)}};
}

std::unique_ptr<NodePlan> plan_expand(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    parallel_copy(inputs[0].broadcast_to(outputs[0].dims), outputs[0], context.threads);
  });
}

/// Nothing is repeated: the elements stay as they are.
int viewed_expand(const NodeContext& node) {
  return element_count(infer_expand("Expand", node)[0].dims) == element_count(node.inputs[0].dims) ? 0 : -1;
}

Infos infer_tile(const char* op, const NodeContext& node) {
  check_inputs(op, node, 2, 2);
  Dims dims = node.inputs[0].dims;
  const std::vector<std::int64_t> repeats = known_integers(op, node, 1, "repeats");
  require(repeats.size() == static_cast<std::size_t>(dims.rank()), op, " has ", repeats.size(),
          " repeats, expected rank ", dims.rank());
  for (int a = 0; a < dims.rank(); ++a) {
    const std::int64_t times = repeats[static_cast<std::size_t>(a)];
    require(times >= 0, op, " repeats[", a, "] is ", times, ", expected 0 or more");
    require(!__builtin_mul_overflow(dims[a], times, &dims[a]), op, " axis ", a, " repeated ", times,
            " times does not fit 63 bits");
  }
  return {{node.inputs[0].type, dims}};
}

/// The first copy of the input along every axis, then along one axis after the other whole blocks of what is there:
/// two axes an axis would need a rank of 16.
std::unique_ptr<NodePlan> plan_tile(const char*, const NodeContext& node, const Infos&) {
  return make_plan([from_dims = node.inputs[0].dims](const RunContext&, Inputs inputs, Outputs outputs) {
    const TensorView& out = outputs[0];
    if (out.count() == 0) return;
    TensorView done = out;
    for (int a = 0; a < out.rank(); ++a) done = done.sliced(a, 0, from_dims[a]);
    copy_elements(inputs[0], done);
    for (int a = 0; a < out.rank(); ++a) {
      const TensorView block = done;
      TensorView whole = block;
      whole.dims[a] = out.dims[a];
      for (std::int64_t at = from_dims[a]; at < out.dims[a]; at += from_dims[a]) {
        copy_elements(block, whole.sliced(a, at, at + from_dims[a]));
      }
      done = whole;
    }
  });
}

}  // namespace

void add_expand_ops(Registry* registry) {
  registry->add(make_op("Expand", {.infer = infer_expand, .plan = plan_expand, .aliased_input = viewed_expand}));
  registry->add(make_op("Tile", {.infer = infer_tile, .plan = plan_tile}));
}

}  // namespace headway
