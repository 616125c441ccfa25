// A node with as many inputs as a file can have, from the bytes of the file to the numbers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

constexpr std::int64_t kInputs = 100000;

/// op(Identity(x), −c, Identity(x), −c, …) of x [n] and constants c of one element each, so that fusion replaces every
/// input by something else. Replacing one looked at all of them once, which took minutes.
onnx::ModelProto wide_model(const std::string& op) {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n"});
  add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {""});
  Strings names;
  for (std::int64_t i = 0; i < kInputs; ++i) {
    const std::string number = std::to_string(i);
    names.push_back("a" + number);
    if (i % 2 == 0) {
      add_node(graph, "Identity", {"x"}, {names.back()});
      continue;
    }
    *graph->add_initializer() = raw_floats("c" + number, {1}, {1});
    add_node(graph, "Neg", {"c" + number}, {names.back()});
  }
  onnx::NodeProto* node = add_node(graph, op, names, {"y"});
  if (op == "Concat") {
    onnx::AttributeProto* axis = add_attribute(node, "axis", onnx::AttributeProto::INT);
    axis->set_i(0);
  }
  return model;
}

std::vector<float> result_of(const std::string& op) {
  Registry registry;
  register_ops(&registry);
  OnnxModel model = parse_onnx(bytes_of(wide_model(op)));
  Graph fused = fuse(model.graph, registry);
  EXPECT_EQ(fused.nodes().size(), 1u);
  Tensor x(DataType::kF32, {1});
  *x.data<float>() = 3;
  const ConstTensorView input = x.view();
  const std::vector<Tensor> outputs = Session(std::move(fused), registry).run({&input, 1}, Threads::serial());
  return {outputs[0].data<float>(), outputs[0].data<float>() + outputs[0].count()};
}

TEST(WideNodes, OfAHundredThousandInputsConcatenate) {
  const std::vector<float> y = result_of("Concat");
  ASSERT_EQ(y.size(), static_cast<std::size_t>(kInputs));
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], i % 2 == 0 ? 3 : -1) << i;
}

TEST(WideNodes, OfAHundredThousandInputsAddUp) {
  EXPECT_EQ(result_of("Sum"), std::vector<float>{static_cast<float>(kInputs)});
}

}  // namespace
}  // namespace headway::testing_onnx
