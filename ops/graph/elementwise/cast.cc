// Cast and CastLike: each element as another type, by the rules of convert(). Decides the kernel of a pair of types.
#include "ops/base/numeric.h"
#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/onnx_type.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

using CastKernel = void (*)(const void* from, void* to, std::int64_t n);

template <class From, class To>
void cast_row(const void* from, void* to, std::int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
}

CastKernel kernel_of(DataType from, DataType to) {
  return visit_type(from, [&](auto from_kind) {
    return visit_type(to, [](auto to_kind) -> CastKernel { return &cast_row<decltype(from_kind), decltype(to_kind)>; });
  });
}

DataType type_of_number(const char* op, std::int64_t number) {
  const std::optional<DataType> type = onnx_type(number);
  if (!type) {
    fail(ErrorCode::kUnsupported, op, " to element type ", number,
         ", expected one of 1 (f32), 2 (u8), 3 (i8), 6 (i32), 7 (i64), 9 (bool), 10 (f16), 11 (f64), 16 (bf16)");
  }
  return *type;
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext& node, const Infos& outputs) {
  const DataType from = node.inputs[0].type;
  const DataType to = outputs[0].type;
  const CastKernel kernel = kernel_of(from, to);
  const auto from_bytes = static_cast<std::int64_t>(size_bytes(from));
  const auto to_bytes = static_cast<std::int64_t>(size_bytes(to));
  const BroadcastLoop loop(outputs[0].dims, {outputs[0].dims});
  return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
    loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      kernel(inputs[0].data + piece.out * from_bytes, results[0].data + piece.out * to_bytes, piece.n);
    });
  });
}

/// Elements of shape arithmetic stay what they are where the type can hold them.
Inferred converted(const ValueInfo& from, const std::optional<DataType>& to) {
  ValueInfo out{.type = to, .dims = from.dims, .elements = {}};
  if (!from.elements || !from.type) return {out};
  const bool widens = to == DataType::kI64 || to == from.type;
  if (widens) out.elements = from.elements;
  if (to == DataType::kI32 && all_numbers(*from.elements)) {
    out.elements = from.elements;
    for (Dim& one : *out.elements) one = convert<std::int32_t>(one.factor);
  }
  return {out};
}

Inferred infer_cast(const char* op, const InferContext& node) {
  check_inputs(op, node, 1, 1);
  return converted(node.inputs[0], type_of_number(op, node.attributes.integer("to")));
}

Inferred infer_like(const char* op, const InferContext& node) {
  check_inputs(op, node, 2, 2);
  return converted(node.inputs[0], node.inputs[1].type);
}

/// A cast to the same type is a view.
int viewed(const NodeContext& node, const Infos& outputs) { return outputs[0].type == node.inputs[0].type ? 0 : -1; }

}  // namespace

void add_cast_ops(Registry* registry) {
  registry->add(make_op("Cast", {.infer = infer_cast, .plan = plan, .aliased_input = viewed}));
  registry->add(make_op("CastLike", {.infer = infer_like, .plan = plan, .aliased_input = viewed}));
}

}  // namespace headway
