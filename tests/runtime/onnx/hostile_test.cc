// Models that cannot be right are refused in one line that says what is wrong.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "tests/runtime/onnx/model_maker.h"

namespace headway::testing_onnx {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

struct HostileCase {
  const char* name;
  std::function<void(onnx::ModelProto*)> spoil;
  const char* message;  ///< part of what the error says
};

onnx::TensorProto* bias(onnx::ModelProto* model) { return model->mutable_graph()->mutable_initializer(0); }

const HostileCase kCases[] = {
    {"Cycle", [](auto* m) { m->mutable_graph()->mutable_node(0)->set_input(0, "y"); }, "the graph has a cycle"},
    {"SelfCycle", [](auto* m) { m->mutable_graph()->mutable_node(0)->set_input(0, "sum"); }, "the graph has a cycle"},
    {"Dangling", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_input(0, "nowhere"); },
     "input 0 is 'nowhere', which is no input, initializer or output of a node"},
    {"DanglingOutput", [](auto* m) { m->mutable_graph()->mutable_output(0)->set_name("nowhere"); },
     "output 'nowhere' is made by no node"},
    {"TwoMakers", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_output(0, "sum"); },
     "value 'sum' is made twice"},
    {"TwoInitializers", [](auto* m) { *m->mutable_graph()->add_initializer() = *bias(m); },
     "value 'bias' is made twice"},
    {"NegativeDim", [](auto* m) { bias(m)->set_dims(0, -2); }, "tensor 'bias' axis 0 is -2, expected 0 or more"},
    {"NegativeInputDim",
     [](auto* m) {
       auto* shape = m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
       shape->mutable_dim(2)->set_dim_value(-64);
     },
     "input 'x' axis 2 is -64, expected 0 or more"},
    {"DimsOverflow",
     [](auto* m) {
       bias(m)->set_dims(0, kHuge);
       bias(m)->set_dims(1, kHuge);
     },
     "tensor 'bias': "},
    {"BytesOverflow", [](auto* m) { bias(m)->set_dims(0, kHuge / 64); }, "tensor 'bias': "},
    {"LargerThanTheFile", [](auto* m) { bias(m)->set_dims(0, 1 << 30); },
     "has 512 bytes of data, expected 274877906944"},
    {"SmallerThanItsData", [](auto* m) { bias(m)->set_dims(0, 1); }, "has 512 bytes of data, expected 256"},
    {"NoData", [](auto* m) { bias(m)->clear_raw_data(); }, "has 0 elements of data, expected 128"},
    {"OddData", [](auto* m) { bias(m)->mutable_raw_data()->pop_back(); }, "has 511 bytes of data, expected 512"},
    {"ListInOtherType",
     [](auto* m) {
       bias(m)->clear_raw_data();
       for (int i = 0; i < 128; ++i) bias(m)->add_int64_data(i);
     },
     "has 0 elements of data, expected 128"},
    {"UnknownType", [](auto* m) { bias(m)->set_data_type(99); }, "tensor 'bias' has element type 99"},
    {"NoType", [](auto* m) { bias(m)->clear_data_type(); }, "tensor 'bias' has element type 0"},
    {"StringType", [](auto* m) { bias(m)->set_data_type(onnx::TensorProto::STRING); },
     "has elements of type string, which is not supported"},
    {"ManyDims",
     [](auto* m) {
       for (int i = 0; i < 100000; ++i) bias(m)->add_dims(1);
     },
     "tensor 'bias' has rank 100002, at most 8"},
    {"NoOpset", [](auto* m) { m->clear_opset_import(); }, "imports no opset"},
    {"OldOpset", [](auto* m) { m->mutable_opset_import(0)->set_version(9); }, "of opset 9, supported are 13 to 25"},
    {"NewOpset", [](auto* m) { m->mutable_opset_import(0)->set_version(99); }, "of opset 99, supported are 13 to 25"},
    {"NoGraph", [](auto* m) { m->clear_graph(); }, "it has no graph"},
    {"SequenceInput", [](auto* m) { m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type(); },
     "input 'x' is a sequence, only tensors are supported"},
    {"NoRank",
     [](auto* m) { m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape(); },
     "input 'x' has no shape"},
    {"ExternalFromMemory",
     [](auto* m) {
       bias(m)->set_data_location(onnx::TensorProto::EXTERNAL);
       auto* entry = bias(m)->add_external_data();
       entry->set_key("location");
       entry->set_value("weights.bin");
     },
     "the model has no folder"},
    {"ExternalOffset",
     [](auto* m) {
       bias(m)->set_data_location(onnx::TensorProto::EXTERNAL);
       auto* entry = bias(m)->add_external_data();
       entry->set_key("offset");
       entry->set_value("-4");
     },
     "has the offset '-4' in its external data"},
    {"AttributeWithoutType", [](auto* m) { m->mutable_graph()->mutable_node(0)->add_attribute()->set_name("axis"); },
     "attribute 'axis' has no type"},
    {"RecursiveFunction",
     [](auto* m) {
       auto* function = m->add_functions();
       function->set_name("Add");
       function->add_input("a");
       function->add_input("b");
       function->add_output("c");
       add_node(function->mutable_node(), "Add", {"a", "b"}, {"c"});
     },
     "nested 65 deep, at most 64"},
};

TEST(HostileModels, AreRefusedInOneLine) {
  for (const HostileCase& c : kCases) {
    onnx::ModelProto model = small_model();
    c.spoil(&model);
    try {
      parse_onnx(bytes_of(model));
      ADD_FAILURE() << c.name << " was taken";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(c.message), std::string::npos) << c.name << ": " << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << c.name;
    }
  }
}

TEST(HostileModels, FunctionsThatGrowWithoutBoundStop) {
  onnx::ModelProto model = small_model();
  for (int i = 0; i < 40; ++i) {
    auto* function = model.add_functions();
    function->set_domain("local");
    function->set_name("F" + std::to_string(i));
    function->add_input("a");
    function->add_output("c");
    const std::string inner = i == 0 ? "Relu" : "F" + std::to_string(i - 1);
    for (const char* output : {"b", "c"}) {
      auto* node = add_node(function->mutable_node(), inner, {"a"}, {output});
      if (i > 0) node->set_domain("local");
    }
  }
  auto* call = add_node(model.mutable_graph(), "F39", {"x"}, {"z"});
  call->set_domain("local");
  EXPECT_THROW(parse_onnx(bytes_of(model)), Error);
}

TEST(HostileModels, UnknownOperatorsAreListedAtOnce) {
  onnx::ModelProto model = small_model();
  add_node(model.mutable_graph(), "Mystery", {"x"}, {"a"})->set_name("first");
  add_node(model.mutable_graph(), "Mystery", {"x"}, {"b"})->set_name("second");
  add_node(model.mutable_graph(), "Riddle", {"x"}, {"c"})->set_domain("some.where");
  Registry registry;
  register_ops(&registry);
  OnnxModel read = parse_onnx(bytes_of(model));
  try {
    const Session session(std::move(read.graph), registry);
    FAIL() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    const std::string text = error.what();
    for (const char* part : {"Mystery", "'first'", "'second'", "some.where.Riddle", "'c'"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace headway::testing_onnx
