// See spoil.h.
#include "tests/fuzz/spoil.h"

#include <algorithm>
#include <limits>

namespace headway::fuzz {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kNumbers[] = {0,
                                     -1,
                                     1,
                                     2,
                                     3,
                                     7,
                                     -2,
                                     8,
                                     64,
                                     1000,
                                     kMin,
                                     kMax,
                                     kMin + 1,
                                     std::int64_t{1} << 31,
                                     -(1LL << 31),
                                     1LL << 32,
                                     1LL << 40,
                                     4294967295LL};

onnx::NodeProto* any_node(Dice* dice, onnx::ModelProto* model) {
  auto* nodes = model->mutable_graph()->mutable_node();
  return nodes->empty() ? nullptr
                        : nodes->Mutable(static_cast<int>(dice->below(static_cast<std::uint64_t>(nodes->size()))));
}

/// The name of any value of the graph, or one that is none.
std::string any_name(Dice* dice, const onnx::ModelProto& model) {
  std::vector<std::string> names{"", "nobody"};
  for (const auto& input : model.graph().input()) names.push_back(input.name());
  for (const auto& constant : model.graph().initializer()) names.push_back(constant.name());
  for (const auto& node : model.graph().node()) names.insert(names.end(), node.output().begin(), node.output().end());
  return dice->pick(names);
}

void change_inputs(Dice* dice, onnx::ModelProto* model, onnx::NodeProto* node) {
  if (node->input_size() == 0 || dice->one_in(5)) {
    node->add_input(any_name(dice, *model));
    return;
  }
  const int at = static_cast<int>(dice->below(static_cast<std::uint64_t>(node->input_size())));
  switch (dice->below(4)) {
    case 0:
      node->mutable_input()->DeleteSubrange(at, node->input_size() - at);
      break;
    case 1:
      node->mutable_input()->DeleteSubrange(at, 1);
      break;
    case 2:
      node->set_input(at, any_name(dice, *model));
      break;
    default:
      node->mutable_input()->SwapElements(0, at);
  }
}

void change_outputs(Dice* dice, onnx::ModelProto* model, onnx::NodeProto* node) {
  if (node->output_size() == 0 || dice->one_in(2)) {
    node->add_output(dice->one_in(2) ? "more" : any_name(dice, *model));
  } else {
    node->mutable_output()->RemoveLast();
  }
}

void change_attribute(Dice* dice, onnx::NodeProto* node) {
  if (node->attribute_size() == 0 || dice->one_in(6)) {
    constexpr const char* kNames[] = {"axis",        "axes",      "perm",    "to",        "keepdims",
                                      "q_num_heads", "num_heads", "scale",   "is_causal", "kv_num_heads",
                                      "mode",        "value",     "epsilon", "dims"};
    onnx::AttributeProto* made = node->add_attribute();
    made->set_name(dice->pick(kNames));
    made->set_type(onnx::AttributeProto::INT);
    made->set_i(dice->pick(kNumbers));
    return;
  }
  const int at = static_cast<int>(dice->below(static_cast<std::uint64_t>(node->attribute_size())));
  onnx::AttributeProto* one = node->mutable_attribute(at);
  switch (dice->below(6)) {
    case 0:
      node->mutable_attribute()->DeleteSubrange(at, 1);
      break;
    case 1:
      one->set_type(static_cast<onnx::AttributeProto::AttributeType>(dice->between(1, 8)));
      break;
    case 2:
      one->add_ints(dice->pick(kNumbers));
      break;
    case 3:
      if (one->ints_size() > 0) one->set_ints(0, dice->pick(kNumbers));
      break;
    case 4:
      if (one->ints_size() > 0) one->mutable_ints()->RemoveLast();
      break;
    default:
      one->set_i(dice->pick(kNumbers));
      one->set_f(dice->one_in(2) ? std::numeric_limits<float>::infinity() : -1.0f);
  }
}

void change_constant(Dice* dice, onnx::ModelProto* model) {
  auto* constants = model->mutable_graph()->mutable_initializer();
  if (constants->empty()) return;
  onnx::TensorProto* one =
      constants->Mutable(static_cast<int>(dice->below(static_cast<std::uint64_t>(constants->size()))));
  switch (dice->below(5)) {
    case 0:  // other dims for the same data, or for none
      if (one->dims_size() > 0) one->set_dims(0, dice->pick(kNumbers));
      break;
    case 1:
      one->add_dims(dice->one_in(2) ? 1 : dice->pick(kNumbers));
      break;
    case 2:
      one->set_data_type(static_cast<int>(dice->between(0, 23)));
      break;
    case 3: {  // another number in a list of integers: a shape, axes, pads
      if (one->data_type() != onnx::TensorProto::INT64 || one->raw_data().size() < sizeof(std::int64_t)) break;
      std::string raw = one->raw_data();
      const std::int64_t number = dice->pick(kNumbers);
      const std::size_t place = dice->below(raw.size() / sizeof(number)) * sizeof(number);
      std::copy_n(reinterpret_cast<const char*>(&number), sizeof(number),
                  raw.begin() + static_cast<std::ptrdiff_t>(place));
      one->set_raw_data(raw);
      break;
    }
    default:
      one->set_raw_data(one->raw_data().substr(0, dice->below(one->raw_data().size() + 1)));
  }
}

void change_graph(Dice* dice, onnx::ModelProto* model) {
  onnx::GraphProto* graph = model->mutable_graph();
  switch (dice->below(7)) {
    case 0:
      if (graph->node_size() > 1) {
        graph->mutable_node()->SwapElements(
            0, static_cast<int>(dice->below(static_cast<std::uint64_t>(graph->node_size()))));
      }
      break;
    case 1:
      if (graph->node_size() > 0) {
        graph->mutable_node()->DeleteSubrange(
            static_cast<int>(dice->below(static_cast<std::uint64_t>(graph->node_size()))), 1);
      }
      break;
    case 2:
      if (graph->input_size() > 0)
        graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
            static_cast<int>(dice->between(0, 17)));
      break;
    case 3:
      if (graph->input_size() > 0 && graph->input(0).type().tensor_type().shape().dim_size() > 0) {
        graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
            dice->pick(kNumbers));
      }
      break;
    case 4:
      graph->add_output()->set_name(any_name(dice, *model));
      break;
    case 5:
      model->mutable_opset_import(0)->set_version(dice->between(-1, 30));
      break;
    default:
      if (graph->node_size() > 0) *graph->add_node() = graph->node(0);
  }
}

void change_op(Dice* dice, onnx::NodeProto* node) {
  constexpr const char* kOps[] = {"Add",       "MatMul",
                                  "Softmax",   "Transpose",
                                  "Reshape",   "Concat",
                                  "Slice",     "Gather",
                                  "Where",     "Pow",
                                  "Attention", "ReduceMean",
                                  "Expand",    "Split",
                                  "Squeeze",   "Einsum",
                                  "Gemm",      "Conv",
                                  "Unsqueeze", "Cast",
                                  "Pad",       "Tile",
                                  "Flatten",   "Trilu",
                                  "CumSum",    "LayerNormalization",
                                  "Range",     "Shape"};
  node->set_op_type(dice->pick(kOps));
}

}  // namespace

void spoil_model(Dice* dice, onnx::ModelProto* model) {
  for (std::int64_t left = dice->between(1, 3); left > 0; --left) {
    onnx::NodeProto* node = any_node(dice, model);
    if (node == nullptr) return change_graph(dice, model);
    switch (dice->below(8)) {
      case 0:
      case 1:
        change_inputs(dice, model, node);
        break;
      case 2:
      case 3:
        change_attribute(dice, node);
        break;
      case 4:
        change_constant(dice, model);
        break;
      case 5:
        change_op(dice, node);
        break;
      case 6:
        change_outputs(dice, model, node);
        break;
      default:
        change_graph(dice, model);
    }
  }
}

void spoil_bytes(Dice* dice, std::string* bytes, std::size_t max_more) {
  constexpr const char* kPieces[] = {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
                                     "\xFF\xFF\xFF\xFF\x0F",
                                     "[",
                                     "{\"",
                                     "\\u0000",
                                     "18446744073709551616",
                                     "-1",
                                     "1e999",
                                     "(",
                                     ",",
                                     "'",
                                     "\x08\x96\x01",
                                     "]]]]",
                                     "\n"};
  for (std::int64_t left = dice->between(1, 4); left > 0; --left) {
    const std::size_t at = dice->below(bytes->size() + 1);
    switch (dice->below(6)) {
      case 0:
        if (at < bytes->size()) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << dice->below(8)));
        break;
      case 1:
        if (at < bytes->size()) (*bytes)[at] = static_cast<char>(dice->below(256));
        break;
      case 2:
        bytes->resize(at);
        break;
      case 3:
        bytes->insert(at, dice->pick(kPieces));
        break;
      case 4: {  // a stretch once more, now and then very often
        const std::string again = bytes->substr(at, dice->below(64));
        const std::size_t times = dice->one_in(50) ? max_more / (again.size() + 1) : 1;
        std::string all;
        for (std::size_t i = 0; i < times; ++i) all += again;
        bytes->insert(at, all);
        break;
      }
      default:
        bytes->erase(at, dice->below(32));
    }
  }
}

}  // namespace headway::fuzz
