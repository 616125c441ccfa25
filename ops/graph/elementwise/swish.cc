// Swish, x·sigmoid(alpha·x), which is SiLU where alpha is 1 and QuickGelu where it is 1.702. Narrow types are widened
// in pieces that stay in the first cache, computed in f32 and rounded once; f64 is plain. −inf gives −0, the limit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/numeric.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/elementwise/unary_math.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "ops/simd/elementwise.h"

namespace headway {
namespace {

constexpr std::int64_t kPiece = 512;

/// x·gate where the gate is 0 at an infinity that is on its side.
template <class T>
T gated(T x, T gate) {
  return gate == 0 && std::isinf(x) ? -T{0} : x * gate;
}

template <class T>
void swish_row(const ElementwiseKernels& kernels, float alpha, const T* x, T* y, std::int64_t n) {
  float wide[kPiece], gate[kPiece];
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, n - begin);
    for (std::int64_t i = 0; i < count; ++i) gate[i] = (wide[i] = widen(x[begin + i])) * alpha;
    kernels.sigmoid(gate, gate, count);
    for (std::int64_t i = 0; i < count; ++i) y[begin + i] = convert<T>(gated(wide[i], gate[i]));
  }
}
void swish_row(const ElementwiseKernels&, float alpha, const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = gated(x[i], math::Sigmoid()(double{alpha} * x[i]));
}

OpFunctions swish(float default_alpha) {
  return {.infer = [](const char* op, const InferContext& node) -> Inferred {
            check_inputs(op, node, 1, 1);
            check_outputs(op, node, 1);
            check_type(op, node, 0, kFloatTypes);
            node.attributes.real("alpha", 1);
            return {like(node.inputs[0])};
          },
          .plan =
              [default_alpha](const char*, const NodeContext& node, const Infos& outputs) {
                const float alpha = node.attributes.real("alpha", default_alpha);
                const BroadcastLoop loop(outputs[0].dims, {outputs[0].dims});
                return make_plan(
                    [=, kernels = elementwise_kernels()](const RunContext& context, Inputs inputs, Outputs results) {
                      visit_type(results[0].type, [&](auto kind) {
                        using T = decltype(kind);
                        if constexpr (kIsFloat<T>) {
                          loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
                            swish_row(kernels, alpha, inputs[0].as<T>() + piece.out, results[0].as<T>() + piece.out,
                                      piece.n);
                          });
                        }
                      });
                    });
              }};
}

}  // namespace

void add_swish_ops(Registry* registry) {
  registry->add(make_op("Swish", swish(1.0f)));
  registry->add(make_op("com.microsoft.QuickGelu", swish(1.702f)));
}

}  // namespace headway
