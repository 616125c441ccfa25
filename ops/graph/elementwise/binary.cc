// Arithmetic on two or more tensors: Add, Sub, Mul, Div, Mod, and Max, Min, Sum, Mean of any number. Decides the kernel
// of a type; the traversal is BroadcastLoop's.
#include "ops/graph/elementwise/arithmetic.h"
#include "ops/graph/elementwise/binary_row.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/elementwise/element_arithmetic.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

using KernelOf = BinaryKernel (*)(DataType);

template <class F>
BinaryKernel plain_kernel(DataType type) {
  return visit_type(type, [](auto kind) -> BinaryKernel {
    using T = decltype(kind);
    if constexpr (std::is_same_v<T, bool>) {
      return nullptr;
    } else {
      return &binary_row<T, T, F>;
    }
  });
}

/// The four that models spend time in have kernels of their own for f32.
template <class F, BinaryKernel ElementwiseKernels::*kVectorised>
BinaryKernel hot_kernel(DataType type) {
  return type == DataType::kF32 ? elementwise_kernels().*kVectorised : plain_kernel<F>(type);
}

Inferred infer_two(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  check_type(op, node, 0, kNumericTypes);
  check_same_type(op, node, 0, 1);
  return {{.type = node.inputs[0].type,
           .dims = broadcast(op, node, node.inputs[0].dims, node.inputs[1].dims),
           .elements = element_arithmetic(op, node)}};
}

OpFunctions two(KernelOf kernel_of) {
  return {.infer = infer_two, .plan = [kernel_of](const char*, const NodeContext& node, const Infos& outputs) {
            const BinaryKernel kernel = kernel_of(outputs[0].type);
            const auto bytes = static_cast<std::int64_t>(size_bytes(outputs[0].type));
            const BroadcastLoop loop(outputs[0].dims, {node.inputs[0].dims, node.inputs[1].dims});
            return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
              loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
                kernel({.a = inputs[0].data + piece.operand[0] * bytes,
                        .a_step = loop.step(0),
                        .b = inputs[1].data + piece.operand[1] * bytes,
                        .b_step = loop.step(1),
                        .out = results[0].data + piece.out * bytes,
                        .n = piece.n});
              });
            });
          }};
}

Inferred infer_many(const char* op, const InferContext& node) {
  require(!node.inputs.empty(), op, " has 0 inputs, expected 1 or more");
  check_inputs(op, node, node.inputs.size(), node.inputs.size());
  check_type(op, node, 0, kNumericTypes);
  ValueInfo out = like(node.inputs[0]);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    check_same_type(op, node, 0, i);
    out.dims = broadcast(op, node, out.dims, node.inputs[i].dims);
  }
  out.elements = element_arithmetic(op, node);
  return {out};
}

/// y[i] *= factor, which is exact enough for a mean: one rounding more.
void scale_row(DataType type, std::byte* data, std::int64_t n, double factor) {
  visit_type(type, [&](auto kind) {
    using T = decltype(kind);
    if constexpr (kIsFloat<T>) {
      auto* y = reinterpret_cast<T*>(data);
      for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(static_cast<double>(widen(y[i])) * factor);
    }
  });
}

/// The first input is spread over the output, the others are taken in one after the other, in place.
OpFunctions many(KernelOf kernel_of, bool mean = false) {
  return {.infer =
              [mean](const char* op, const InferContext& node) {
                Inferred outputs = infer_many(op, node);
                if (mean) check_type(op, node, 0, kFloatTypes);
                return outputs;
              },
          .plan =
              [kernel_of, mean](const char*, const NodeContext& node, const Infos& outputs) {
                const DataType type = outputs[0].type;
                const auto bytes = static_cast<std::int64_t>(size_bytes(type));
                const BinaryKernel kernel = kernel_of(type);
                std::vector<BroadcastLoop> loops;
                for (const TensorInfo& input : node.inputs)
                  loops.emplace_back(BroadcastLoop(outputs[0].dims, {input.dims}));
                return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
                  std::byte* out = results[0].data;
                  copy_elements(inputs[0].broadcast_to(results[0].dims), results[0]);
                  for (std::size_t i = 1; i < inputs.size(); ++i) {
                    loops[i].run(context.threads, [&](const BroadcastLoop::Piece& piece) {
                      kernel({.a = out + piece.out * bytes,
                              .a_step = 1,
                              .b = inputs[i].data + piece.operand[0] * bytes,
                              .b_step = loops[i].step(0),
                              .out = out + piece.out * bytes,
                              .n = piece.n});
                    });
                  }
                  if (mean) scale_row(type, out, results[0].count(), 1.0 / static_cast<double>(inputs.size()));
                });
              }};
}

/// Σ of many narrow tensors, or their mean: in f32, rounded once.
template <class T>
void sum_in_f32(const RunContext& context, const std::vector<BroadcastLoop>& loops, Inputs inputs, const TensorView& y,
                bool mean) {
  auto* const sum = reinterpret_cast<float*>(context.workspace);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const T* const x = inputs[i].as<T>();
    const std::int64_t step = loops[i].step(0);
    loops[i].run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      for (std::int64_t k = 0; k < piece.n; ++k) {
        const float value = widen(x[piece.operand[0] + k * step]);
        float& to = sum[piece.out + k];
        to = i == 0 ? value : to + value;
      }
    });
  }
  const float count = mean ? static_cast<float>(inputs.size()) : 1;
  for (std::int64_t k = 0; k < y.count(); ++k) y.as<T>()[k] = convert<T>(sum[k] / count);
}

OpFunctions sum_of_many(bool mean) {
  OpFunctions functions = many(hot_kernel<arithmetic::Add, &ElementwiseKernels::add>, mean);
  functions.plan = [mean, wide = functions.plan](const char* op, const NodeContext& node,
                                                 const Infos& outputs) -> std::unique_ptr<NodePlan> {
    const DataType type = outputs[0].type;
    if (type != DataType::kF16 && type != DataType::kBF16) return wide(op, node, outputs);
    std::vector<BroadcastLoop> loops;
    for (const TensorInfo& input : node.inputs) loops.emplace_back(BroadcastLoop(outputs[0].dims, {input.dims}));
    const auto run = [=](const RunContext& context, Inputs inputs, Outputs results) {
      if (type == DataType::kF16) {
        sum_in_f32<Float16>(context, loops, inputs, results[0], mean);
      } else {
        sum_in_f32<BFloat16>(context, loops, inputs, results[0], mean);
      }
    };
    const auto bytes = static_cast<std::size_t>(element_count(outputs[0].dims)) * sizeof(float);
    return make_plan(run, [bytes](int) { return bytes; });
  };
  return functions;
}

/// Mod's two meanings are told apart by an attribute.
OpFunctions mod() {
  return {.infer =
              [](const char* op, const InferContext& node) {
                const bool truncated = node.attributes.integer("fmod", 0) != 0;
                Inferred outputs = infer_two(op, node);
                const DataType type = outputs[0].type.value_or(DataType::kI64);
                require(truncated || !is_float(type), op, " of ", type_name(type), " has fmod = 0, expected 1");
                return outputs;
              },
          .plan =
              [](const char* op, const NodeContext& node, const Infos& outputs) {
                const bool truncated = node.attributes.integer("fmod", 0) != 0;
                return two(truncated ? plain_kernel<arithmetic::TruncatedMod> : plain_kernel<arithmetic::FloorMod>)
                    .plan(op, node, outputs);
              }};
}

}  // namespace

void add_binary_ops(Registry* registry) {
  registry->add(make_op("Add", two(hot_kernel<arithmetic::Add, &ElementwiseKernels::add>)));
  registry->add(make_op("Sub", two(hot_kernel<arithmetic::Sub, &ElementwiseKernels::sub>)));
  registry->add(make_op("Mul", two(hot_kernel<arithmetic::Mul, &ElementwiseKernels::mul>)));
  registry->add(make_op("Div", two(hot_kernel<arithmetic::Div, &ElementwiseKernels::div>)));
  registry->add(make_op("Mod", mod()));
  registry->add(make_op("Max", many(plain_kernel<arithmetic::Max>)));
  registry->add(make_op("Min", many(plain_kernel<arithmetic::Min>)));
  registry->add(make_op("Sum", sum_of_many(false)));
  registry->add(make_op("Mean", sum_of_many(true)));
}

}  // namespace headway
