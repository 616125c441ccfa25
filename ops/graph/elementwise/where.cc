// Where: one of two values, by a condition, all three broadcast. Copies elements of a size and knows no type.
#include <cstring>

#include "ops/graph/elementwise/broadcast_loop.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"

namespace headway {
namespace {

struct WhereRow {
  const bool* condition;
  const std::byte* yes;
  const std::byte* no;
  std::byte* out;
  std::int64_t n;
};

/// Word is an unsigned integer as wide as an element. memcpy keeps to the aliasing rules and costs nothing.
template <class Word>
void where_row(const BroadcastLoop& loop, const WhereRow& row) {
  const std::int64_t steps[] = {loop.step(0), loop.step(1), loop.step(2)};
  const auto bytes = static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t i = 0; i < row.n; ++i) {
    Word yes, no;
    std::memcpy(&yes, row.yes + i * steps[1] * bytes, sizeof(Word));
    std::memcpy(&no, row.no + i * steps[2] * bytes, sizeof(Word));
    const Word result = row.condition[i * steps[0]] ? yes : no;
    std::memcpy(row.out + i * bytes, &result, sizeof(Word));
  }
}

using WhereKernel = void (*)(const BroadcastLoop&, const WhereRow&);

WhereKernel kernel_of(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return where_row<std::uint8_t>;
    case 2:
      return where_row<std::uint16_t>;
    case 4:
      return where_row<std::uint32_t>;
    default:
      return where_row<std::uint64_t>;
  }
}

/// Of short lists, by a condition that is known.
std::optional<DimList> chosen_elements(const InferContext& node) {
  const auto& condition = node.inputs[0].elements;
  const auto& yes = node.inputs[1].elements;
  const auto& no = node.inputs[2].elements;
  if (!condition || !yes || !no) return std::nullopt;
  std::size_t count = 1;
  for (const DimList* list : {&*condition, &*yes, &*no}) {
    if (list->size() == 1) continue;
    if (count != 1 && list->size() != count) return std::nullopt;
    count = list->size();
  }
  DimList elements;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pick = [&](const DimList& list) { return list.size() == 1 ? list[0] : list[i]; };
    const Dim chosen = pick(*condition);
    if (!chosen.is_number()) return std::nullopt;
    elements.push_back(chosen.factor != 0 ? pick(*yes) : pick(*no));
  }
  return elements;
}

Inferred infer(const char* op, const InferContext& node) {
  check_inputs(op, node, 3, 3);
  check_type(op, node, 0, {DataType::kBool});
  check_same_type(op, node, 1, 2);
  const auto values = broadcast(op, node, node.inputs[1].dims, node.inputs[2].dims);
  return {{.type = node.inputs[1].type,
           .dims = broadcast(op, node, node.inputs[0].dims, values),
           .elements = chosen_elements(node)}};
}

std::unique_ptr<NodePlan> plan(const char*, const NodeContext& node, const Infos& outputs) {
  const auto bytes = static_cast<std::int64_t>(size_bytes(outputs[0].type));
  const WhereKernel kernel = kernel_of(size_bytes(outputs[0].type));
  const BroadcastLoop loop(outputs[0].dims, {node.inputs[0].dims, node.inputs[1].dims, node.inputs[2].dims});
  return make_plan([=](const RunContext& context, Inputs inputs, Outputs results) {
    loop.run(context.threads, [&](const BroadcastLoop::Piece& piece) {
      kernel(loop, {.condition = inputs[0].as<bool>() + piece.operand[0],
                    .yes = inputs[1].data + piece.operand[1] * bytes,
                    .no = inputs[2].data + piece.operand[2] * bytes,
                    .out = results[0].data + piece.out * bytes,
                    .n = piece.n});
    });
  });
}

}  // namespace

void add_where_op(Registry* registry) { registry->add(make_op("Where", {.infer = infer, .plan = plan})); }

}  // namespace headway
