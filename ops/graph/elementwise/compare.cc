// Operators whose result is bool: comparisons, And, Or, Xor of two tensors, Not, IsNaN, IsInf of one. Decides the
// kernel of a type; the traversal is BroadcastLoop's.
#include <cmath>
#include <functional>

#include "ops/graph/elementwise/binary_row.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/elementwise/element_arithmetic.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"

namespace headway {
namespace {

using KernelOf = BinaryKernel (*)(DataType);

struct And {
  bool operator()(bool a, bool b) const { return a && b; }
};
struct Or {
  bool operator()(bool a, bool b) const { return a || b; }
};
struct Xor {
  bool operator()(bool a, bool b) const { return a != b; }
};

/// Null where the operator has no such type.
template <class F>
BinaryKernel comparison(DataType type) {
  return visit_type(type, [](auto kind) -> BinaryKernel { return &binary_row<decltype(kind), bool, F>; });
}
template <class F>
BinaryKernel logical(DataType type) {
  return type == DataType::kBool ? &binary_row<bool, bool, F> : nullptr;
}

OpFunctions two(KernelOf kernel_of) {
  return {.infer = [kernel_of](const char* op, const InferContext& node) -> Inferred {
            check_inputs(op, node, 2, 2);
            check_same_type(op, node, 0, 1);
            const DataType type = node.inputs[0].type.value_or(DataType::kBool);
            if (kernel_of(type) == nullptr) check_type(op, node, 0, {DataType::kBool});
            return {{.type = DataType::kBool,
                     .dims = broadcast(op, node, node.inputs[0].dims, node.inputs[1].dims),
                     .elements = element_arithmetic(op, node)}};
          },
          .plan =
              [kernel_of](const char*, const NodeContext& node, const Infos& outputs) {
                const BinaryKernel kernel = kernel_of(node.inputs[0].type);
                const auto bytes = static_cast<std::int64_t>(size_bytes(node.inputs[0].type));
                const BroadcastLoop loop(outputs[0].dims, {node.inputs[0].dims, node.inputs[1].dims});
                return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
                  loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
                    kernel({.a = inputs[0].data + piece.operand[0] * bytes,
                            .a_step = loop.step(0),
                            .b = inputs[1].data + piece.operand[1] * bytes,
                            .b_step = loop.step(1),
                            .out = results[0].data + piece.out,
                            .n = piece.n});
                  });
                });
              }};
}

/// `test` is asked a compute type's value; `needs` is the only type it knows, or f32 for "any float".
template <class Test>
OpFunctions one(DataType needs, Test test) {
  return {.infer = [needs](const char* op, const InferContext& node) -> Inferred {
            check_inputs(op, node, 1, 1);
            if (needs == DataType::kBool) {
              check_type(op, node, 0, {DataType::kBool});
            } else {
              check_type(op, node, 0, kFloatTypes);
            }
            return {{.type = DataType::kBool, .dims = node.inputs[0].dims, .elements = element_arithmetic(op, node)}};
          },
          .plan =
              [test](const char*, const NodeContext& node, const Infos& outputs) {
                const Attributes attributes = node.attributes;
                const BroadcastLoop loop(outputs[0].dims, {outputs[0].dims});
                const auto f = test(attributes);
                return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
                  bool* y = results[0].as<bool>();
                  visit_type(inputs[0].type, [&](auto kind) {
                    using T = decltype(kind);
                    const T* x = inputs[0].as<T>();
                    loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
                      for (std::int64_t i = piece.out; i < piece.out + piece.n; ++i) {
                        y[i] = f(static_cast<double>(widen(x[i])));
                      }
                    });
                  });
                });
              }};
}

auto is_infinite(const Attributes& attributes) {
  const bool positive = attributes.integer("detect_positive", 1) != 0;
  const bool negative = attributes.integer("detect_negative", 1) != 0;
  return [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); };
}

}  // namespace

void add_compare_ops(Registry* registry) {
  registry->add(make_op("Equal", two(comparison<std::equal_to<>>)));
  registry->add(make_op("Less", two(comparison<std::less<>>)));
  registry->add(make_op("LessOrEqual", two(comparison<std::less_equal<>>)));
  registry->add(make_op("Greater", two(comparison<std::greater<>>)));
  registry->add(make_op("GreaterOrEqual", two(comparison<std::greater_equal<>>)));
  registry->add(make_op("And", two(logical<And>)));
  registry->add(make_op("Or", two(logical<Or>)));
  registry->add(make_op("Xor", two(logical<Xor>)));
  registry->add(
      make_op("Not", one(DataType::kBool, [](const Attributes&) { return [](double x) { return x == 0; }; })));
  registry->add(
      make_op("IsNaN", one(DataType::kF32, [](const Attributes&) { return [](double x) { return std::isnan(x); }; })));
  registry->add(make_op("IsInf", one(DataType::kF32, is_infinite)));
}

}  // namespace headway
