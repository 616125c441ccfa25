// From the product downwards.
#include "ops/fusion/patterns/linear.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/fusion/attention/projection.h"

namespace headway::fusion {
namespace {

/// The one node that reads a value which does not leave the graph; −1 when there are more or none.
int only_reader(const Draft& draft, ValueId value) {
  if (!draft.has_one_consumer(value)) return -1;
  const int index = draft.consumers(value)[0];
  return draft.node(index).guards.empty() ? index : -1;
}

/// Linear's word for a node's activation; empty when it is none.
std::string activation_of(const Node& node) {
  if (node.op == "Relu") return "relu";
  if (node.op == "Tanh") return "tanh";
  if (node.op == "Sigmoid") return "sigmoid";
  if (node.op != "Gelu") return {};
  return node.attributes.text("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu";
}

/// x·W with a constant W [K, N] or [N, K], and the bias that a Gemm has.
std::optional<Projection> product_of(const Draft& draft, Facts* facts, const Node& node) {
  Projection p;
  p.input = node.inputs[0];
  p.weight = node.inputs[1];
  if (node.op == "Gemm") {
    const bool plain = node.attributes.integer("transA", 0) == 0 && node.attributes.real("alpha", 1) == 1 &&
                       node.attributes.real("beta", 1) == 1;
    if (!plain) return std::nullopt;
    p.transposed = node.attributes.integer("transB", 0) != 0;
    if (node.inputs.size() > 2) p.bias = node.inputs[2];
  }
  const Tensor* weight = draft.constant(p.weight);
  if (weight == nullptr || weight->type() != DataType::kF32 || weight->dims().rank() != 2) return std::nullopt;
  if (facts->rank(p.input) < 2 || facts->type(p.input) != DataType::kF32) return std::nullopt;
  p.columns = weight->dims()[p.transposed ? 0 : 1];
  return p;
}

/// A constant f32 of as many elements as the product has columns, all on the last axis.
bool is_bias(const Draft& draft, ValueId value, std::int64_t columns, int rank) {
  const Tensor* bias = draft.constant(value);
  return bias != nullptr && bias->type() == DataType::kF32 && bias->dims().rank() >= 1 && bias->dims().rank() <= rank &&
         bias->dims().back() == columns && bias->count() == columns;
}

/// The bias as [N].
ValueId flat_bias(ValueId bias, Draft* draft) {
  const Tensor& tensor = *draft->constant(bias);
  if (tensor.dims().rank() == 1) return bias;
  auto flat = std::make_shared<Tensor>(DataType::kF32, Dims{tensor.count()});
  copy_elements(tensor.view().reshaped({tensor.count()}), flat->view());
  return draft->add_constant(draft->value_name(bias), std::move(flat));
}

}  // namespace

bool fuse_linear(int index, Draft* draft, Facts* facts, FusedGroup* group) {
  const Node& node = draft->node(index);
  if (!node.guards.empty() || node.inputs.size() < 2) return false;
  auto product = product_of(*draft, facts, node);
  if (!product) return false;
  ValueId last = node.outputs[0];
  int rows_from = index;  // the node whose name and place the new one takes
  if (product->bias != kNoValue && !is_bias(*draft, product->bias, product->columns, 2)) return false;
  const bool had_bias = product->bias != kNoValue;
  if (const int next = only_reader(*draft, last); next >= 0 && !had_bias && draft->node(next).op == "Add") {
    const Node& add = draft->node(next);
    const ValueId bias = add.inputs[add.inputs[0] == last ? 1 : 0];
    if (bias != last && is_bias(*draft, bias, product->columns, facts->rank(product->input))) {
      product->bias = bias;
      last = add.outputs[0];
      rows_from = next;
    }
  }
  // An activation, or one behind a Reshape, which may as well come after it.
  std::string activation;
  ValueId activated = kNoValue;
  ValueId reshaped = kNoValue;
  int next = only_reader(*draft, last);
  if (next >= 0 && draft->node(next).op == "Reshape" && draft->node(next).inputs[0] == last) {
    reshaped = draft->node(next).outputs[0];
    next = only_reader(*draft, reshaped);
  }
  if (next >= 0) {
    activation = activation_of(draft->node(next));
    if (!activation.empty()) activated = draft->node(next).outputs[0];
  }
  const bool added = product->bias != kNoValue && !had_bias;
  if (!added && activation.empty()) return false;

  std::vector<ValueId> inputs{product->input, weight_constant(*product, draft)};
  if (product->bias != kNoValue) inputs.push_back(flat_bias(product->bias, draft));
  Attributes attributes;
  if (!activation.empty()) attributes.set("activation", activation);
  const std::string name = draft->node(rows_from).name;
  const ValueId fused =
      draft->add_node({"Linear", name, std::move(inputs), std::move(attributes), 1, draft->place_of(rows_from)})
          .front();
  draft->replace(last, fused);
  if (activated != kNoValue) draft->replace(activated, reshaped != kNoValue ? reshaped : fused);
  *group = {.node = name, .kind = "Linear", .mask = ""};
  return true;
}

}  // namespace headway::fusion
