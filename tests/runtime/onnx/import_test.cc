// What a model becomes: inputs, constants, branches, functions, external data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

namespace fs = std::filesystem;

class Importing : public ::testing::Test {
 protected:
  Importing() {
    register_ops(&registry_);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Importing() override { fs::remove_all(folder_); }

  std::string write(const onnx::ModelProto& model, const std::string& file = "model.onnx") const {
    const std::string path = (folder_ / file).string();
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return path;
  }
  /// The first output for one f32 input of these dims that counts 0, 1, 2, ….
  Tensor run(OnnxModel model, const Dims& dims) const {
    Tensor x(DataType::kF32, dims);
    for (std::int64_t i = 0; i < x.count(); ++i) x.data<float>()[i] = static_cast<float>(i);
    const Session session(std::move(model.graph), registry_);
    const ConstTensorView view = std::as_const(x).view();
    return std::move(session.run({&view, 1}, Threads::serial())[0]);
  }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) /
      ("headway_onnx_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  Registry registry_;
};

void expect_sum(const Tensor& y, std::int64_t batch) {
  ASSERT_EQ(y.dims(), (Dims{batch, 128}));
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const std::int64_t row = i / 128, column = i % 128;
    ASSERT_EQ(y.data<float>()[i], static_cast<float>(row * 64 + column % 64 + column)) << i;
  }
}

TEST_F(Importing, AModelFromAFileRunsAtTwoShapes) {
  const std::string path = write(small_model());
  expect_sum(run(read_onnx(path), {1, 1, 64}), 1);
  expect_sum(run(read_onnx(path), {3, 1, 64}), 3);
}

TEST_F(Importing, AModelFromMemoryIsTheSame) {
  std::vector<std::byte> bytes = bytes_of(small_model());
  OnnxModel model = parse_onnx(bytes);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});  // nothing of it may be kept
  expect_sum(run(std::move(model), {2, 1, 64}), 2);
}

TEST_F(Importing, LargeWeightsStayInTheFileAtAnyAlignment) {
  for (std::size_t padding = 0; padding < 4; ++padding) {
    onnx::ModelProto model = empty_model();
    model.set_producer_name(std::string(padding, 'p'));
    onnx::GraphProto* graph = model.mutable_graph();
    add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n", "64"});
    add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {"", "32"});
    // Used three ways: packed by a product, read as bytes by a look-up, read as numbers by a sum.
    std::vector<float> values(64 * 32);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
    *graph->add_initializer() = raw_floats("w", {64, 32}, values);
    *graph->add_initializer() = raw_integers("row", {1}, {1});
    add_node(graph, "MatMul", {"x", "w"}, {"product"});
    add_node(graph, "Gather", {"w", "row"}, {"looked_up"});
    add_node(graph, "Add", {"product", "looked_up"}, {"sum"});
    add_node(graph, "Slice", {"w", "row", "two"}, {"slice"});
    *graph->add_initializer() = raw_integers("two", {1}, {2});
    add_node(graph, "Add", {"sum", "slice"}, {"y"});
    OnnxModel read = read_onnx(write(model));
    EXPECT_EQ(read.mapped_bytes, values.size() * sizeof(float));
    const Tensor y = run(std::move(read), {1, 64});
    for (std::size_t n = 0; n < 32; ++n) {
      float expected = 2 * values[32 + n];
      for (std::size_t k = 0; k < 64; ++k) expected += static_cast<float>(k) * values[k * 32 + n];
      ASSERT_EQ(y.data<float>()[n], expected) << n;
    }
  }
}

TEST_F(Importing, DimsKeepSizesAndNames) {
  onnx::ModelProto model = small_model();
  add_value(model.mutable_graph()->mutable_input(), "unused", onnx::TensorProto::INT64, {"batch", "", "3"});
  const OnnxModel read = parse_onnx(bytes_of(model));
  ASSERT_EQ(read.graph.inputs().size(), 2u);
  EXPECT_EQ(read.graph.inputs()[1].type, DataType::kI64);
  EXPECT_EQ(std::get<std::string>(read.graph.inputs()[1].dims[0]), "batch");
  EXPECT_EQ(std::get<std::string>(read.graph.inputs()[1].dims[1]), "unused:1");
  EXPECT_EQ(std::get<std::int64_t>(read.graph.inputs()[1].dims[2]), 3);
}

TEST_F(Importing, AnInputWithAnInitializerIsAConstant) {
  onnx::ModelProto model = small_model();
  add_value(model.mutable_graph()->mutable_input(), "bias", onnx::TensorProto::FLOAT, {"2", "64"});
  EXPECT_EQ(parse_onnx(bytes_of(model)).graph.inputs().size(), 1u);
}

TEST_F(Importing, NamesOfOperatorsCarryTheirDomain) {
  onnx::ModelProto model = small_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_node(graph, "Attention", {"x", "x", "x"}, {"a"});
  add_node(graph, "Attention", {"x", "", "x"}, {"b", "", "c", ""})->set_domain("com.microsoft");
  const Graph read = parse_onnx(bytes_of(model)).graph;
  EXPECT_EQ(read.nodes()[2].op, "onnx.Attention");
  EXPECT_EQ(read.nodes()[3].op, "com.microsoft.Attention");
  EXPECT_EQ(read.nodes()[3].inputs[1], kNoValue);
  EXPECT_EQ(read.nodes()[3].outputs.size(), 3u);
}

/// A branch that adds "x" and the initializer `addend`.
void set_branch(onnx::NodeProto* node, const std::string& name, const onnx::TensorProto& addend) {
  onnx::GraphProto* branch = add_attribute(node, name, onnx::AttributeProto::GRAPH)->mutable_g();
  branch->set_name(name);
  *branch->add_initializer() = addend;
  add_node(branch, "Add", {"x", addend.name()}, {"inner"});
  add_value(branch->mutable_output(), "inner", onnx::TensorProto::FLOAT, {"", ""});
}

onnx::ModelProto branching_model() {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto* graph = model.mutable_graph();
  add_value(graph->mutable_input(), "x", onnx::TensorProto::FLOAT, {"n", "2"});
  add_value(graph->mutable_output(), "y", onnx::TensorProto::FLOAT, {"", ""});
  return model;
}

TEST_F(Importing, AConstantConditionLeavesOneBranch) {
  for (const bool taken : {true, false}) {
    onnx::ModelProto model = branching_model();
    onnx::TensorProto* condition = model.mutable_graph()->add_initializer();
    condition->set_name("condition");
    condition->set_data_type(onnx::TensorProto::BOOL);
    condition->add_int32_data(taken);
    onnx::NodeProto* node = add_node(model.mutable_graph(), "If", {"condition"}, {"y"});
    set_branch(node, "then_branch", raw_floats("addend", {2}, {10, 20}));
    set_branch(node, "else_branch", raw_floats("addend", {2}, {-1, -2}));
    OnnxModel read = parse_onnx(bytes_of(model));
    EXPECT_EQ(read.graph.nodes().size(), 1u);
    EXPECT_EQ(run(std::move(read), {1, 2}).data<float>()[1], taken ? 21 : -1);
  }
}

TEST_F(Importing, AConditionOfTheShapePicksABranchAShape) {
  onnx::ModelProto model = branching_model();
  onnx::GraphProto* graph = model.mutable_graph();
  *graph->add_initializer() = raw_integers("one", {1}, {1});
  add_node(graph, "Shape", {"x"}, {"dims"});
  onnx::AttributeProto* end = add_attribute(graph->mutable_node(0), "end", onnx::AttributeProto::INT);
  end->set_i(1);
  add_node(graph, "Equal", {"dims", "one"}, {"condition"});
  onnx::NodeProto* node = add_node(graph, "If", {"condition"}, {"y"});
  set_branch(node, "then_branch", raw_floats("addend", {2}, {10, 20}));
  set_branch(node, "else_branch", raw_floats("addend", {1, 1, 2}, {-1, -2}));  // of another rank
  const std::vector<std::byte> bytes = bytes_of(model);
  EXPECT_EQ(run(parse_onnx(bytes), {1, 2}).data<float>()[1], 21);
  const Tensor other = run(parse_onnx(bytes), {3, 2});
  EXPECT_EQ(other.dims(), (Dims{1, 3, 2}));
  EXPECT_EQ(other.data<float>()[3], 1);
}

TEST_F(Importing, FunctionsAreInlinedWithTheirAttributes) {
  onnx::ModelProto model = branching_model();
  onnx::FunctionProto* function = model.add_functions();
  function->set_domain("local");
  function->set_name("Turn");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("order");
  onnx::NodeProto* transpose = add_node(function->mutable_node(), "Transpose", {"a"}, {"b"});
  onnx::AttributeProto* perm = add_attribute(transpose, "perm", onnx::AttributeProto::INTS);
  perm->set_ref_attr_name("order");
  onnx::NodeProto* call = add_node(model.mutable_graph(), "Turn", {"x"}, {"y"});
  call->set_domain("local");
  set_integers(call, "order", {1, 0});
  const Tensor y = run(parse_onnx(bytes_of(model)), {3, 2});
  EXPECT_EQ(y.dims(), (Dims{2, 3}));
  EXPECT_EQ(y.data<float>()[1], 2);
}

/// The small model with bias in a file beside it; `offset` bytes come before.
onnx::ModelProto external_model(const fs::path& folder, std::size_t offset) {
  onnx::ModelProto model = small_model();
  onnx::TensorProto* bias = model.mutable_graph()->mutable_initializer(0);
  std::ofstream(folder / "weights.bin", std::ios::binary) << std::string(offset, '\x7F') << bias->raw_data();
  bias->clear_raw_data();
  bias->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", "weights.bin"},
                                   {"offset", std::to_string(offset)},
                                   {"length", "512"}}) {
    onnx::StringStringEntryProto* entry = bias->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

TEST_F(Importing, ExternalDataIsFoundAtAnyOffset) {
  for (const std::size_t offset : {std::size_t{0}, std::size_t{64}, std::size_t{3}}) {
    OnnxModel model = read_onnx(write(external_model(folder_, offset)));
    expect_sum(run(std::move(model), {1, 1, 64}), 1);
  }
}

TEST_F(Importing, ExternalDataStaysInItsFolder) {
  const onnx::ModelProto good = external_model(folder_, 0);
  fs::create_directories(folder_ / "inside");
  fs::copy(folder_ / "weights.bin", folder_ / "inside" / "weights.bin");
  fs::create_symlink(folder_ / "weights.bin", folder_ / "inside" / "link.bin");
  const auto read_from_inside = [&](const std::string& location) {
    onnx::ModelProto model = good;
    model.mutable_graph()->mutable_initializer(0)->mutable_external_data(0)->set_value(location);
    return read_onnx(write(model, "inside/model.onnx"));
  };
  EXPECT_EQ(read_from_inside("weights.bin").graph.nodes().size(), 2u);
  EXPECT_EQ(read_from_inside("./weights.bin").graph.nodes().size(), 2u);
  const std::string absolute = (folder_ / "inside" / "weights.bin").string();
  for (const std::string& location :
       {std::string("../weights.bin"), std::string("x/../../weights.bin"), absolute, std::string("link.bin"),
        std::string(), std::string("missing.bin"), std::string(".")}) {
    EXPECT_THROW(read_from_inside(location), Error) << location;
  }
}

TEST_F(Importing, HubCachesOfLinksAreRead) {
  onnx::ModelProto model = external_model(folder_, 0);
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots" / "abc" / "onnx");
  fs::rename(folder_ / "weights.bin", folder_ / "blobs" / "1");
  write(model, "blobs/0");
  const fs::path snapshot = folder_ / "snapshots" / "abc" / "onnx";
  fs::create_symlink("../../../blobs/0", snapshot / "model.onnx");
  fs::create_symlink("../../../blobs/1", snapshot / "weights.bin");
  expect_sum(run(read_onnx((snapshot / "model.onnx").string()), {1, 1, 64}), 1);

  // The name says where it may be looked for, a link where it may lead: nowhere but beside the model's own file.
  fs::create_directories(folder_ / "elsewhere");
  fs::copy(folder_ / "blobs" / "1", folder_ / "elsewhere" / "1");
  fs::remove(snapshot / "weights.bin");
  fs::create_symlink(folder_ / "elsewhere" / "1", snapshot / "weights.bin");
  EXPECT_THROW(read_onnx((snapshot / "model.onnx").string()), Error);
  model.mutable_graph()->mutable_initializer(0)->mutable_external_data(0)->set_value("../../../blobs/1");
  write(model, "blobs/0");
  EXPECT_THROW(read_onnx((snapshot / "model.onnx").string()), Error);
}

TEST_F(Importing, UnalignedIntegersAreReadWhereverTheyLie) {
  // 600 indices, too large to be copied for their size, at every offset of a file; shapes are inferred from such.
  std::vector<std::int64_t> indices(600);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i % 7);
  for (std::size_t padding = 0; padding < 8; ++padding) {
    onnx::ModelProto model = empty_model();
    onnx::GraphProto* graph = model.mutable_graph();
    model.set_producer_name(std::string(padding, 'p'));
    add_value(graph->mutable_input(), "table", onnx::TensorProto::FLOAT, {"7"});
    add_value(graph->mutable_output(), "rows", onnx::TensorProto::FLOAT, {"600"});
    *graph->add_initializer() = raw_integers("indices", {600}, indices);
    add_node(graph, "Gather", {"table", "indices"}, {"rows"});
    const OnnxModel read = read_onnx(write(model));
    const Tensor* constant = read.graph.constant(read.graph.nodes()[0].inputs[1]);
    ASSERT_NE(constant, nullptr);
    const ExternalBuffer* mapped = constant->foreign();
    const std::byte* where = mapped != nullptr ? mapped->bytes() : constant->view().data;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(where) % 8, 0u) << padding;
    EXPECT_TRUE(std::equal(indices.begin(), indices.end(), constant->data<std::int64_t>())) << padding;
  }
}

}  // namespace
}  // namespace headway::testing_onnx
