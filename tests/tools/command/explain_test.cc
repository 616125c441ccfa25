// headway explain: what it says of a model without running it, and every option of it.
#include <gtest/gtest.h>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

class Explain : public testing::Test {
 protected:
  Explain() {
    folder_.write("add.onnx", onnx_bytes::add_model());
    folder_.write("attention.onnx", onnx_bytes::attention_model());
  }
  /// What it prints, when all is well.
  std::string explain(const std::string& arguments) {
    const CommandResult result = folder_.run("explain " + arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    EXPECT_EQ(result.error, "") << arguments;
    return result.out;
  }
  static void expect_part(const std::string& text, const std::string& part, bool there = true) {
    EXPECT_EQ(text.find(part) != std::string::npos, there) << "'" << part << "' in\n" << text;
  }

  CommandFolder folder_;
};

TEST_F(Explain, NamesModelInputsAndFusion) {
  const std::string text = explain("attention.onnx --threads 1");
  expect_part(text, "opset 17, onnx_bytes, 5 nodes (1 to run)");
  expect_part(text, "input q f32 [1, 2, S, 4], planned for [1, 2, 16, 4]");
  expect_part(text, "attention fused in 1 of 1");
  expect_part(text, "memory:");
  EXPECT_EQ(folder_.files(), (std::vector<std::string>{"add.onnx", "attention.onnx"})) << "nothing is written";
}

TEST_F(Explain, PlansForTheShapesAskedFor) {
  const std::string text = explain("attention.onnx --shape q=1,2,40,4");
  expect_part(text, "input q f32 [1, 2, S, 4], planned for [1, 2, 40, 4]");
  expect_part(text, "input k f32 [1, 2, S, 4], planned for [1, 2, 40, 4]");  // of the same name
}

TEST_F(Explain, ShowsEveryNodeOnlyWhenAsked) {
  expect_part(explain("add.onnx"), "Add ", false);
  expect_part(explain("add.onnx --nodes"), "Add ");
  const std::string unfused = explain("attention.onnx --nodes --unfused");
  for (const char* op : {"Transpose ", "MatMul ", "Mul ", "Softmax "}) expect_part(unfused, op);
  expect_part(unfused, "attention fused", false);
  expect_part(explain("attention.onnx --nodes"), "Softmax ", false);
}

TEST_F(Explain, BadUseAndBadModelsAreRefused) {
  expect_refused(folder_, "explain", "model");
  expect_refused(folder_, "explain nowhere.onnx", "nowhere.onnx: cannot open");
  expect_refused(folder_, "explain add.onnx --inputs x", "--inputs");
  expect_refused(folder_, "explain add.onnx --threads 0", "--threads");
  expect_refused(folder_, "explain add.onnx --implementation magic", "--implementation is 'magic'");
  expect_stopped(folder_, "explain add.onnx --shape z=1", "--shape names the input 'z', expected one of x");
  expect_stopped(folder_, "explain add.onnx --shape x=1,2,3", "x");
  using namespace onnx_bytes;
  folder_.write("unknown.onnx",
                model(node("Mystery", {"x"}, {"y"}, "first") + input("x", kFloat, {"4"}) + output("y", kFloat, {"4"})));
  expect_refused(folder_, "explain unknown.onnx", "1 operator is not supported: Mystery (node 'first')");
}

}  // namespace
}  // namespace headway
