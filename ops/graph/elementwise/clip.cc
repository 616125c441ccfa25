// Clip: between two bounds that are inputs, either of which may be absent. NaN stays, and where the bounds cross the
// upper one wins. Knows no traversal.
#include "ops/base/numeric.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 3);
  check_type(op, node, 0, kNumericTypes);
  for (const std::size_t i : {1, 2}) {
    if (!has_input(node, i)) continue;
    check_same_type(op, node, 0, i);
    check_one_element(op, node, i, "input " + std::to_string(i));
  }
  return {like(node.inputs[0])};
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext&, const Infos& outputs) {
  const BroadcastLoop loop(outputs[0].dims, {outputs[0].dims});
  return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
    visit_type(inputs[0].type, [&](auto kind) {
      using T = decltype(kind);
      const ConstTensorView low_view = optional_input(inputs, 1);
      const ConstTensorView high_view = optional_input(inputs, 2);
      const T* x = inputs[0].as<T>();
      T* y = results[0].as<T>();
      loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
        for (std::int64_t i = piece.out; i < piece.out + piece.n; ++i) {
          T value = x[i];
          if (low_view && widen(value) < widen(*low_view.as<T>())) value = *low_view.as<T>();
          if (high_view && widen(value) > widen(*high_view.as<T>())) value = *high_view.as<T>();
          y[i] = value;
        }
      });
    });
  });
}

}  // namespace

void add_clip_op(Registry* registry) { registry->add(make_op("Clip", {.infer = infer, .plan = plan})); }

}  // namespace headway
