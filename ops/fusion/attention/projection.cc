// Readers of the forms, upwards and downwards.
#include "ops/fusion/attention/projection.h"

#include "ops/fusion/analysis/constant_view.h"

namespace headway::fusion {
namespace {

/// A constant f32 of that rank.
const Tensor* weights(const Draft& draft, ValueId value, int rank) {
  const Tensor* constant = draft.constant(value);
  return constant != nullptr && constant->type() == DataType::kF32 && constant->dims().rank() == rank ? constant
                                                                                                      : nullptr;
}

/// MatMul(x, W).
std::optional<Projection> read_matmul(const Draft& draft, ValueId value) {
  const Node* node = draft.maker(value, "MatMul");
  const Tensor* weight = node != nullptr ? weights(draft, node->inputs[1], 2) : nullptr;
  if (weight == nullptr) return std::nullopt;
  Projection p;
  p.input = node->inputs[0];
  p.weight = node->inputs[1];
  p.columns = weight->dims()[1];
  return p;
}

/// x·W + b of rank 2; W may be transposed.
std::optional<Projection> read_gemm(const Draft& draft, ValueId value) {
  const Node* node = draft.maker(value, "Gemm");
  if (node == nullptr || node->attributes.integer("transA", 0) != 0) return std::nullopt;
  if (node->attributes.real("alpha", 1) != 1 || node->attributes.real("beta", 1) != 1) return std::nullopt;
  const Tensor* weight = weights(draft, node->inputs[1], 2);
  if (weight == nullptr) return std::nullopt;
  Projection p;
  p.input = node->inputs[0];
  p.weight = node->inputs[1];
  p.transposed = node->attributes.integer("transB", 0) != 0;
  p.columns = weight->dims()[p.transposed ? 0 : 1];
  if (node->inputs.size() > 2 && node->inputs[2] != kNoValue) {
    const Tensor* bias = weights(draft, node->inputs[2], 1);
    if (bias == nullptr || bias->dims()[0] != p.columns) return std::nullopt;
    p.bias = node->inputs[2];
  }
  return p;
}

std::optional<Projection> read_added(const Draft& draft, ValueId value) {
  const Node* node = draft.maker(value, "Add");
  if (node == nullptr) return std::nullopt;
  for (const std::size_t k : {0, 1}) {
    auto p = read_matmul(draft, node->inputs[k]);
    const Tensor* bias = weights(draft, node->inputs[1 - k], 1);
    if (!p || bias == nullptr || bias->dims()[0] != p->columns) continue;
    p->bias = node->inputs[1 - k];
    return p;
  }
  return std::nullopt;
}

/// The same without a bias, where exporters write a product only.
std::optional<Projection> read_rows(const Draft& draft, ValueId value) {
  if (auto p = read_gemm(draft, value)) return p;
  return read_matmul(draft, value);
}

/// Reshape [B, S, N] of a product of a Reshape [B·S, E].
std::optional<Projection> read_flat(const Draft& draft, Facts* facts, ValueId value) {
  const Node* outer = draft.maker(value, "Reshape");
  auto p = outer != nullptr ? read_rows(draft, outer->inputs[0]) : std::nullopt;
  const Node* inner = p ? draft.maker(p->input, "Reshape") : nullptr;
  if (inner == nullptr) return std::nullopt;
  const auto from = facts->of(inner->inputs[0]).dims;
  const auto to = facts->of(value).dims;
  if (!from || !to || from->size() != 3 || to->size() != 3 || !(*to)[2].is(p->columns)) return std::nullopt;
  const Tensor* weight = draft.constant(p->weight);
  if (!(*from)[2].is(weight->dims()[p->transposed ? 1 : 0])) return std::nullopt;
  if ((*from)[0] != (*to)[0] || (*from)[1] != (*to)[1]) return std::nullopt;
  // Rows that the file gives as a number are the only ones that run.
  if (facts->dim(p->input, 0) != (*from)[0] * (*from)[1]) return std::nullopt;
  p->input = inner->inputs[0];
  return p;
}

/// One part of a Split of the last axis.
std::optional<Projection> read_part(const Draft& draft, Facts* facts, ValueId value) {
  const int index = draft.producer(value);
  if (index < 0 || draft.node(index).op != "Split" || !draft.node(index).guards.empty()) return std::nullopt;
  const Node& node = draft.node(index);
  const int rank = facts->rank(node.inputs[0]);
  const std::int64_t axis = node.attributes.integer("axis", 0);
  if (rank != 3 || (axis != 2 && axis != -1)) return std::nullopt;
  auto p = read_projection(draft, facts, node.inputs[0]);
  if (!p) return std::nullopt;
  for (const ValueId output : node.outputs) {
    const auto width = facts->dim(output, -1);
    if (!width || !width->is_number()) return std::nullopt;
    if (output == value) {
      p->columns = width->factor;
      return p;
    }
    p->begin += width->factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Projection> read_projection(const Draft& draft, Facts* facts, ValueId value) {
  if (facts->rank(value) != 3) return std::nullopt;
  if (const Node* node = draft.maker(value, "Mul")) {
    for (const std::size_t k : {1, 0}) {
      const auto number = facts->scalar(node->inputs[k]);
      if (!number || facts->rank(node->inputs[1 - k]) != 3) continue;
      auto p = read_projection(draft, facts, node->inputs[1 - k]);
      if (p) p->scale *= *number;
      return p;
    }
  }
  if (auto p = read_added(draft, value)) return p;
  if (auto p = read_matmul(draft, value)) return p;
  if (auto p = read_flat(draft, facts, value)) return p;
  return read_part(draft, facts, value);
}

namespace {

/// The one node that reads a value which does not leave the graph; null when there are more or none.
const Node* only_reader(const Draft& draft, ValueId value) {
  if (!draft.has_one_consumer(value)) return nullptr;
  const Node& node = draft.node(draft.consumers(value)[0]);
  return node.guards.empty() ? &node : nullptr;
}

/// The projection of [B, S, E] that `tokens` goes into and nothing else.
std::optional<OutputProjection> below_tokens(const Draft& draft, Facts* facts, ValueId tokens) {
  // Candidates for its result, furthest first: Add, then MatMul; or the Reshape behind a Gemm.
  std::vector<ValueId> results;
  ValueId value = tokens;
  for (int step = 0; step < 3; ++step) {
    const Node* node = only_reader(draft, value);
    if (node == nullptr || node->inputs[0] == kNoValue) break;
    value = node->outputs[0];
    results.insert(results.begin(), value);
  }
  for (const ValueId result : results) {
    const auto p = read_projection(draft, facts, result);
    if (p && p->input == tokens && p->scale == 1 && p->begin == 0) return OutputProjection{*p, result};
  }
  return std::nullopt;
}

}  // namespace

std::optional<OutputProjection> projection_below(const Draft& draft, Facts* facts, ValueId heads) {
  const Node* join = only_reader(draft, heads);
  const auto split = facts->of(heads).dims;
  if (join == nullptr || join->op != "Reshape" || !split || split->size() != 4) return std::nullopt;
  const ValueId joined = join->outputs[0];
  const auto dims = facts->of(joined).dims;
  if (!dims) return std::nullopt;
  if (dims->size() == 3) {
    const bool tokens_stay = (*dims)[0] == (*split)[0] && (*dims)[1] == (*split)[1];
    return tokens_stay ? below_tokens(draft, facts, joined) : std::nullopt;
  }
  const Node* product = dims->size() == 2 ? only_reader(draft, joined) : nullptr;
  const auto p = product != nullptr ? read_rows(draft, product->outputs[0]) : std::nullopt;
  const Node* outer = p && p->input == joined ? only_reader(draft, product->outputs[0]) : nullptr;
  if (outer == nullptr || outer->op != "Reshape") return std::nullopt;
  if ((*dims)[0] != (*split)[0] * (*split)[1]) return std::nullopt;
  const DimList expected{(*split)[0], (*split)[1], Dim(p->columns)};
  if (facts->of(outer->outputs[0]).dims != expected) return std::nullopt;
  return OutputProjection{*p, outer->outputs[0]};
}

ValueId weight_constant(const Projection& p, Draft* draft) {
  const Tensor& whole = *draft->constant(p.weight);
  const std::int64_t all = whole.dims()[p.transposed ? 0 : 1];
  if (!p.transposed && p.begin == 0 && p.columns == all) return p.weight;
  ConstantViews aligned;
  const ConstTensorView view = p.transposed ? aligned.view(whole).permuted({1, 0}) : aligned.view(whole);
  const ConstTensorView part = view.sliced(1, p.begin, p.begin + p.columns);
  auto tensor = std::make_shared<Tensor>(DataType::kF32, part.dims);
  copy_elements(part, tensor->view());
  return draft->add_constant(draft->value_name(p.weight) + "/" + std::to_string(p.begin), std::move(tensor));
}

ValueId bias_constant(const Projection& p, Draft* draft) {
  if (p.bias == kNoValue) return kNoValue;
  const Tensor& whole = *draft->constant(p.bias);
  if (p.begin == 0 && p.columns == whole.dims()[0]) return p.bias;
  auto tensor = std::make_shared<Tensor>(DataType::kF32, Dims{p.columns});
  ConstantViews aligned;
  copy_elements(aligned.view(whole).sliced(0, p.begin, p.begin + p.columns), tensor->view());
  return draft->add_constant(draft->value_name(p.bias) + "/" + std::to_string(p.begin), std::move(tensor));
}

}  // namespace headway::fusion
