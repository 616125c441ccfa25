// Functions of one number: the table of them, in f32 by vectorised kernels where models spend time, and by the C++
// library otherwise. Decides the kernel of a type; the traversal is BroadcastLoop's.
#include <cmath>

#include "ops/base/numeric.h"
#include "ops/graph/elementwise/arithmetic.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/elementwise/element_arithmetic.h"
#include "ops/graph/elementwise/unary_math.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "ops/simd/elementwise.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

template <class T, class F>
void unary_row(const void* from, void* to, std::int64_t n) {
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(F()(widen(x[i])));
}

/// Null where the function has no such type.
using KernelOf = UnaryKernel (*)(DataType);

template <class F>
UnaryKernel for_floats(DataType type) {
  return visit_type(type, [](auto kind) -> UnaryKernel {
    using T = decltype(kind);
    if constexpr (kIsFloat<T>) return &unary_row<T, F>;
    return nullptr;
  });
}

template <class F>
UnaryKernel for_numbers(DataType type) {
  return visit_type(type, [](auto kind) -> UnaryKernel {
    using T = decltype(kind);
    if constexpr (!std::is_same_v<T, bool>) return &unary_row<T, F>;
    return nullptr;
  });
}

template <class F, UnaryKernel ElementwiseKernels::*kVectorised, KernelOf kOthers = for_floats<F>>
UnaryKernel hot(DataType type) {
  return type == DataType::kF32 ? elementwise_kernels().*kVectorised : kOthers(type);
}

std::unique_ptr<NodePlan> plan_kernel(UnaryKernel kernel, const Infos& outputs) {
  const auto bytes = static_cast<std::int64_t>(size_bytes(outputs[0].type));
  const BroadcastLoop loop(outputs[0].dims, {outputs[0].dims});
  return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
    loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      kernel(inputs[0].data + piece.out * bytes, results[0].data + piece.out * bytes, piece.n);
    });
  });
}

OpFunctions function(KernelOf kernel_of) {
  return {.infer = [kernel_of](const char* op, const InferContext& node) -> Inferred {
            check_inputs(op, node, 1, 1);
            if (kernel_of(node.inputs[0].type.value_or(DataType::kF32)) == nullptr) {
              check_type(op, node, 0, kernel_of(DataType::kI64) == nullptr ? kFloatTypes : kNumericTypes);
            }
            ValueInfo out = like(node.inputs[0]);
            out.elements = element_arithmetic(op, node);
            return {out};
          },
          .plan = [kernel_of](const char*, const NodeContext&,
                              const Infos& outputs) { return plan_kernel(kernel_of(outputs[0].type), outputs); }};
}

KernelOf gelu_kernel(const char* op, const Attributes& attributes) {
  const std::string approximate = attributes.text("approximate", "none");
  require(approximate == "none" || approximate == "tanh", op, " approximate is '", approximate,
          "', expected none or tanh");
  if (approximate == "tanh") return hot<math::GeluTanh, &ElementwiseKernels::gelu_tanh>;
  return hot<math::Gelu, &ElementwiseKernels::gelu>;
}

OpFunctions gelu() {
  return {.infer = [](const char* op,
                      const InferContext& node) { return function(gelu_kernel(op, node.attributes)).infer(op, node); },
          .plan =
              [](const char* op, const NodeContext& node, const Infos& outputs) {
                return plan_kernel(gelu_kernel(op, node.attributes)(outputs[0].type), outputs);
              }};
}

}  // namespace

void add_unary_ops(Registry* registry) {
  const auto add = [&](const char* op, KernelOf kernel_of) { registry->add(make_op(op, function(kernel_of))); };
  add("Abs", for_numbers<math::Abs>);
  add("Neg", for_numbers<math::Neg>);
  add("Sign", for_numbers<math::Sign>);
  add("Relu", hot<math::Relu, &ElementwiseKernels::relu, for_numbers<math::Relu>>);
  add("Exp", hot<math::Exp, &ElementwiseKernels::exp>);
  add("Log", for_floats<math::Log>);
  add("Sqrt", hot<math::Sqrt, &ElementwiseKernels::sqrt>);
  add("Reciprocal", hot<math::Reciprocal, &ElementwiseKernels::reciprocal>);
  add("Erf", hot<math::Erf, &ElementwiseKernels::erf>);
  add("Tanh", hot<math::Tanh, &ElementwiseKernels::tanh>);
  add("Sigmoid", hot<math::Sigmoid, &ElementwiseKernels::sigmoid>);
  add("Softplus", for_floats<math::Softplus>);
  add("Sin", for_floats<math::Sin>);
  add("Cos", for_floats<math::Cos>);
  add("Tan", for_floats<math::Tan>);
  add("Floor", for_floats<math::Floor>);
  add("Ceil", for_floats<math::Ceil>);
  add("Round", for_floats<math::Round>);
  registry->add(make_op("Gelu", gelu()));
  registry->add(make_op("com.microsoft.Gelu", gelu()));
}

}  // namespace headway
