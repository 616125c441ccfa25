// A file in one call: what comes out, which options reach where, and what is refused in which words.
#include "headway/model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/error_of.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

namespace fs = std::filesystem;
using headway::testing::error_of;
using headway::testing::expect_contains;

/// y = 2·x, an operator that this library has not.
class DoubleOp : public Operator {
 public:
  std::string_view name() const override { return "engine.Double"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override { return {node.inputs[0]}; }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo>) const override {
    return std::make_unique<Plan>();
  }

 private:
  struct Plan : NodePlan {
    void run(const RunContext&, std::span<const ConstTensorView> inputs,
             std::span<const TensorView> outputs) const override {
      for (std::int64_t i = 0; i < inputs[0].count(); ++i) {
        outputs[0].as<float>()[i] = 2 * inputs[0].as<float>()[i];
      }
    }
  };
};

onnx::ModelProto model_with_double() {
  onnx::ModelProto model = empty_model();
  auto* domain = model.add_opset_import();
  domain->set_domain("engine");
  domain->set_version(1);
  add_value(model.mutable_graph()->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n"});
  add_value(model.mutable_graph()->mutable_output(), "y", onnx::TensorProto::FLOAT, {"n"});
  onnx::NodeProto* node = add_node(model.mutable_graph(), "Double", {"x"}, {"y"});
  node->set_domain("engine");
  node->set_name("twice");
  return model;
}

/// y = softmax(x·t(x))·x, the plainest attention that an exporter writes.
onnx::ModelProto attention_model() {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"1", "2", "5", "8"});
  add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {"1", "2", "5", "8"});
  set_integers(add_node(graph, "Transpose", {"x"}, {"t"}), "perm", {0, 1, 3, 2});
  add_node(graph, "MatMul", {"x", "t"}, {"scores"});
  add_node(graph, "Softmax", {"scores"}, {"probs"});
  add_node(graph, "MatMul", {"probs", "x"}, {"y"});
  return model;
}

class Loading : public ::testing::Test {
 protected:
  Loading() { fs::create_directories(folder_); }
  ~Loading() override { fs::remove_all(folder_); }
  std::string write(const onnx::ModelProto& model) const {
    const std::string path = (folder_ / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return path;
  }
  const fs::path folder_ =
      fs::path(::testing::TempDir()) /
      ("headway_model_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Loading, AFileRunsByName) {
  const Model model = load_model(write(small_model()));
  EXPECT_EQ(model.facts().opset, 17);
  EXPECT_EQ(model.facts().nodes, 2u);
  EXPECT_GT(model.facts().weight_bytes, 0u);
  ASSERT_EQ(model.session().input_names(), (std::vector<std::string>{"x"}));
  EXPECT_EQ(model.session().output_names(), (std::vector<std::string>{"y"}));
  const std::vector<float> x(64, 1.5f);
  const std::vector<NamedInput> inputs{{"x", view_of(x.data(), {1, 1, 64})}};
  const std::vector<Tensor> y = model.session().run(inputs, Threads::serial());
  ASSERT_EQ(y[0].dims(), (Dims{1, 128}));
  EXPECT_EQ(y[0].data<float>()[3], 4.5f);
}

TEST_F(Loading, AttentionIsFusedUnlessToldNot) {
  const std::string path = write(attention_model());
  const Model fused = load_model(path);
  EXPECT_EQ(fused.fusion().count("attention"), 1) << fused.fusion().text();
  const Model unfused = load_model(path, {.fused = false});
  EXPECT_TRUE(unfused.fusion().fused.empty() && unfused.fusion().missed.empty());
  EXPECT_EQ(unfused.session().graph().nodes().size(), 4u);
  EXPECT_LT(fused.session().graph().nodes().size(), 4u);
  std::vector<float> x(80);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 4;
  const std::vector<NamedInput> inputs{{"x", view_of(std::as_const(x).data(), {1, 2, 5, 8})}};
  const Tensor one = std::move(fused.session().run(inputs, Threads::serial())[0]);
  const Tensor other = std::move(unfused.session().run(inputs, Threads::serial())[0]);
  for (std::int64_t i = 0; i < one.count(); ++i) EXPECT_NEAR(one.data<float>()[i], other.data<float>()[i], 1e-5f) << i;
}

TEST_F(Loading, UnknownOperatorsAreListedWithTheFile) {
  const std::string path = write(model_with_double());
  EXPECT_EQ(error_of([&] { load_model(path); }, ErrorCode::kUnsupported),
            path + ": 1 operator is not supported: engine.Double (node 'twice')");
}

TEST_F(Loading, AnEngineAddsItsOperators) {
  const Model model =
      load_model(write(model_with_double()),
                 {.extend_registry = [](Registry& registry) { registry.add(std::make_unique<DoubleOp>()); }});
  const float x[3] = {1, 2, 3};
  const std::vector<NamedInput> inputs{{"x", view_of(x, {3})}};
  EXPECT_EQ(model.session().run(inputs, Threads::serial())[0].data<float>()[2], 6.0f);
}

TEST_F(Loading, OptionsReachTheSession) {
  const std::string path = write(small_model());
  expect_contains(error_of([&] { load_model(path, {.session = {.plan_cache_capacity = 0}}); }),
                  path + ": plan_cache_capacity is 0");
}

TEST_F(Loading, AFileThatIsNotThere) {
  const std::string path = (folder_ / "none.onnx").string();
  expect_contains(error_of([&] { load_model(path); }, ErrorCode::kIo), path);
}

TEST_F(Loading, FromMemoryAndMovedAbout) {
  Model model = make_model(parse_onnx(bytes_of(model_with_double())),
                           {.extend_registry = [](Registry& registry) { registry.add(std::make_unique<DoubleOp>()); }});
  model = make_model(parse_onnx(bytes_of(small_model())));
  const Model moved(std::move(model));
  EXPECT_EQ(moved.session().input_names(), (std::vector<std::string>{"x"}));
}

}  // namespace
}  // namespace headway::testing_onnx
