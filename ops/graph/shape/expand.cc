// Expand (broadcast to a shape that is an input) and Tile (repeat along axes), each one copy of a view with stride 0.
// Knows no element type.
#include "ops/base/parallel_copy.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

Inferred infer_expand(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  std::optional<DimList> shape = elements_of(op, node, 1, "shape");
  if (shape && all_numbers(*shape)) count_of(*shape);
  for (std::size_t i = 0; shape && i < shape->size(); ++i) {
    if (!is_size(node, (*shape)[i])) (*shape)[i] = node.unknown_size(static_cast<std::int64_t>(i));
  }
  return {{.type = node.inputs[0].type, .dims = broadcast(op, node, node.inputs[0].dims, shape), .elements = {}}};
}

std::unique_ptr<NodePlan> plan_expand(const char*, const NodeContext&, const Infos&) {
  return make_plan([](const RunContext& context, Inputs inputs, Outputs outputs) {
    parallel_copy(inputs[0].broadcast_to(outputs[0].dims), outputs[0], context.threads);
  });
}

/// Nothing is repeated: the elements stay as they are.
int viewed_expand(const NodeContext& node, const Infos& outputs) {
  return element_count(outputs[0].dims) == element_count(node.inputs[0].dims) ? 0 : -1;
}

Inferred infer_tile(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  const std::optional<DimList> repeats = elements_of(op, node, 1, "repeats");
  ValueInfo out = like(node.inputs[0]);
  if (!out.dims) return {out};
  DimList& dims = *out.dims;
  require(!repeats || repeats->size() == dims.size(), op, " has ", repeats ? repeats->size() : 0,
          " repeats, expected rank ", dims.size());
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const Dim times = repeats ? (*repeats)[a] : Dim(-1);
    require(!repeats || !times.is_number() || times.factor >= 0, op, " repeats[", a, "] is ", times,
            ", expected 0 or more");
    if (!is_size(node, times)) {
      dims[a] = node.unknown_size(static_cast<std::int64_t>(a));
      continue;
    }
    std::int64_t fits = 0;
    require(!__builtin_mul_overflow(dims[a].factor, times.factor, &fits), op, " axis ", a, " repeated ", times,
            " times does not fit 63 bits");
    dims[a] = dims[a] * times;
  }
  return {out};
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
