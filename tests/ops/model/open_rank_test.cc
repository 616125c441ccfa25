// Files that do not say how many axes a tensor has: inputs are refused in one line, everything else is found out.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

using headway::testing::error_of;

void add_open(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* list, const std::string& name) {
  onnx::ValueInfoProto* value = list->Add();
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

/// softmax(q·t(k))·v behind Squeezes that name no axes, of inputs [1, 2, 3, 8, 1] with `sizes` or with names alone.
onnx::ModelProto squeezed_attention(bool named) {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  for (const char* const name : {"q", "k", "v"}) {
    const Strings dims = named ? Strings{"b", "h", "s", "d", "e"} : Strings{"2", "2", "3", "8", "1"};
    add_value(graph->mutable_input(), name, onnx::TensorProto::FLOAT, dims);
    add_node(graph, "Squeeze", {name}, {std::string(name) + "4"});
  }
  set_integers(add_node(graph, "Transpose", {"k4"}, {"turned"}), "perm", {0, 1, 3, 2});
  add_node(graph, "MatMul", {"q4", "turned"}, {"scores"});
  add_node(graph, "Softmax", {"scores"}, {"probs"});
  add_node(graph, "MatMul", {"probs", "v4"}, {"y"});
  add_open(graph->mutable_output(), "y");
  add_open(graph->mutable_value_info(), "scores");
  return model;
}

class OpenRanks : public ::testing::Test {
 protected:
  OpenRanks() { register_ops(&registry_); }

  std::vector<float> run(const onnx::ModelProto& model, const std::vector<Dims>& dims, bool fused) {
    OnnxModel read = parse_onnx(bytes_of(model));
    const Session session(fused ? fuse(read.graph, registry_) : std::move(read.graph), registry_);
    std::vector<Tensor> tensors;
    std::vector<TensorInfo> infos;
    for (const Dims& one : dims) {
      tensors.emplace_back(DataType::kF32, one);
      infos.push_back({DataType::kF32, one, true});
      for (std::int64_t i = 0; i < tensors.back().count(); ++i) {
        tensors.back().data<float>()[i] = static_cast<float>((i * 7 + static_cast<std::int64_t>(dims.size())) % 11) / 8;
      }
    }
    std::vector<ConstTensorView> views;
    for (const Tensor& tensor : tensors) views.push_back(tensor.view());
    EXPECT_FALSE(session.explain(infos, 1).empty());
    const std::vector<Tensor> outputs = session.run(views, Threads::serial());
    return {outputs[0].data<float>(), outputs[0].data<float>() + outputs[0].count()};
  }

  Registry registry_;
};

TEST_F(OpenRanks, OfAnInputAreRefused) {
  onnx::ModelProto model = empty_model();
  add_open(model.mutable_graph()->mutable_input(), "x");
  add_node(model.mutable_graph(), "Relu", {"x"}, {"y"});
  add_open(model.mutable_graph()->mutable_output(), "y");
  const std::string text = error_of([&] { parse_onnx(bytes_of(model)); }, ErrorCode::kUnsupported);
  EXPECT_EQ(text, "input 'x' has no shape, not even a rank");
}

/// Files of IR 3 list their weights among the inputs, with or without a shape.
TEST_F(OpenRanks, OfAnInputWithAValueOfItsOwnDoNotMatter) {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"2"});
  add_open(graph->mutable_input(), "w");
  *graph->add_initializer() = raw_floats("w", {2}, {10, 20});
  add_node(graph, "Add", {"x", "w"}, {"y"});
  add_open(graph->mutable_output(), "y");
  for (const bool fused : {false, true}) {
    EXPECT_EQ(run(model, {{2}}, fused), (std::vector<float>{10.125f, 21}));
  }
}

TEST_F(OpenRanks, BetweenNodesRunFusedAsUnfused) {
  for (const bool named : {false, true}) {
    const onnx::ModelProto model = squeezed_attention(named);
    const std::vector<Dims> dims(3, Dims{2, 2, 3, 8, 1});
    const std::vector<float> expected = run(model, dims, false);
    const std::vector<float> got = run(model, dims, true);
    ASSERT_EQ(expected.size(), 96u);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f);
  }
  // With names alone a Squeeze may leave fewer axes, of which the Transpose has too few.
  const onnx::ModelProto model = squeezed_attention(true);
  const std::vector<Dims> fewer(3, Dims{1, 2, 3, 8, 1});
  const std::string unfused = error_of([&] { run(model, fewer, false); });
  EXPECT_NE(unfused.find("(Transpose)"), std::string::npos) << unfused;
  EXPECT_EQ(error_of([&] { run(model, fewer, true); }), unfused);
}

}  // namespace
}  // namespace headway::testing_onnx
