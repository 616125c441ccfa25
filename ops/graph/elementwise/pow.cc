// Pow, whose exponent may have another type than its base. Squares, cubes and roots, the exponents that models have,
// are not sent through pow(). Decides the kernel of a pair of types.
#include <cmath>

#include "ops/graph/elementwise/arithmetic.h"
#include "ops/graph/elementwise/binary_row.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"

namespace headway {
namespace {

template <class T, class E>
T power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return arithmetic::integer_power(base, static_cast<std::int64_t>(exponent));
  } else if constexpr (kIsHalf<T> || std::is_same_v<T, float>) {
    return convert<T>(std::pow(static_cast<float>(widen(base)), static_cast<float>(widen(exponent))));
  } else {
    return convert<T>(std::pow(static_cast<double>(base), static_cast<double>(widen(exponent))));
  }
}

/// True when the exponent is one of those with a short way.
template <class T>
bool short_way(const T* a, std::int64_t step, T* out, std::int64_t n, double exponent) {
  const auto each = [&](auto f) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i * step]);
    return true;
  };
  if (exponent == 2) return each([](T x) { return x * x; });
  if (exponent == 3) return each([](T x) { return x * x * x; });
  // pow(−0, 0.5) is +0 and pow(−inf, 0.5) is +inf, where sqrt gives −0 and NaN.
  if (exponent == 0.5) return each([](T x) { return std::isinf(x) ? std::abs(x) : std::sqrt(x + T{0}); });
  return false;
}

template <class T, class E>
void power_row(const BinaryRow& row) {
  const auto* a = static_cast<const T*>(row.a);
  const auto* b = static_cast<const E*>(row.b);
  auto* out = static_cast<T*>(row.out);
  if constexpr (std::is_floating_point_v<T>) {
    if (row.n > 0 && row.b_step == 0 && short_way(a, row.a_step, out, row.n, static_cast<double>(widen(b[0])))) return;
  }
  for (std::int64_t i = 0; i < row.n; ++i) out[i] = power(a[i * row.a_step], b[i * row.b_step]);
}

BinaryKernel kernel_of(DataType base, DataType exponent) {
  return visit_type(base, [&](auto base_kind) {
    return visit_type(exponent, [](auto exponent_kind) -> BinaryKernel {
      using T = decltype(base_kind);
      using E = decltype(exponent_kind);
      if constexpr (std::is_same_v<T, bool> || std::is_same_v<E, bool>) {
        return nullptr;
      } else {
        return &power_row<T, E>;
      }
    });
  });
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 0, kNumericTypes);
  check_type(op, node, 1, kNumericTypes);
  return {{.type = node.inputs[0].type,
           .dims = broadcast(op, node, node.inputs[0].dims, node.inputs[1].dims),
           .elements = {}}};
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext& node, const Infos& outputs) {
  const BinaryKernel kernel = kernel_of(node.inputs[0].type, node.inputs[1].type);
  const auto base_bytes = static_cast<std::int64_t>(size_bytes(node.inputs[0].type));
  const auto exponent_bytes = static_cast<std::int64_t>(size_bytes(node.inputs[1].type));
  const BroadcastLoop loop(outputs[0].dims, {node.inputs[0].dims, node.inputs[1].dims});
  return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
    loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      kernel({.a = inputs[0].data + piece.operand[0] * base_bytes,
              .a_step = loop.step(0),
              .b = inputs[1].data + piece.operand[1] * exponent_bytes,
              .b_step = loop.step(1),
              .out = results[0].data + piece.out * base_bytes,
              .n = piece.n});
    });
  });
}

}  // namespace

void add_pow_op(Registry* registry) { registry->add(make_op("Pow", {.infer = infer, .plan = plan})); }

}  // namespace headway
