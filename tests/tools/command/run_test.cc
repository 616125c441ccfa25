// headway run on small models: what it computes, and every option of it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

using nlohmann::json;

void expect_says(const CommandResult& result, const std::string& part) {
  EXPECT_NE(result.out.find(part), std::string::npos) << "'" << part << "' is not in\n" << result.out << result.error;
}

void expect_does_not_say(const CommandResult& result, const std::string& part) {
  EXPECT_EQ(result.out.find(part), std::string::npos) << "'" << part << "' is in\n" << result.out;
}

/// A folder with add.onnx, attention.onnx, x.safetensors (one row of ones) and sum.safetensors (what add.onnx gives).
class Run : public testing::Test {
 protected:
  Run() {
    folder_.write("add.onnx", onnx_bytes::add_model());
    folder_.write("attention.onnx", onnx_bytes::attention_model());
    const Tensor x = floats({1, 4}, {1, 1, 1, 1}), sum = floats({1, 4}, {2, 3, 4, 5});
    save(folder_, "x.safetensors", {{"x", &x}});
    save(folder_, "sum.safetensors", {{"y", &sum}});
  }

  CommandFolder folder_;
};

TEST_F(Run, ComputesWhatTheModelSays) {
  const CommandResult result = folder_.run("run add.onnx --inputs x.safetensors --out y");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(load(folder_, "y", "y"), (std::vector<float>{2, 3, 4, 5}));
  expect_says(result, "opset 17, onnx_bytes, 1 nodes");
  expect_says(result, "input x f32 [1, 4] x.safetensors");
  expect_says(result, "output y f32 [1, 4]");
}

TEST_F(Run, InputsComeFromSeveralFilesOfBothKinds) {
  const Tensor q = varied({1, 2, 3, 4}, 1), k = varied({1, 2, 3, 4}, 2), v = varied({1, 2, 3, 4}, 3);
  save(folder_, "all.safetensors", {{"q", &q}, {"k", &k}, {"v", &v}});
  save(folder_, "qk.safetensors", {{"q", &q}, {"k", &k}});
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4), }";
  folder_.write("v.npy", std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict +
                             std::string(reinterpret_cast<const char*>(v.data<float>()), 24 * sizeof(float)));
  ASSERT_EQ(folder_.run("run attention.onnx --inputs all.safetensors --out one").exit_code, 0);
  const CommandResult result = folder_.run("run attention.onnx --inputs qk.safetensors v=v.npy --out two");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_says(result, "input v f32 [1, 2, 3, 4] v.npy");
  EXPECT_EQ(load(folder_, "one", "out"), load(folder_, "two", "out"));
}

TEST_F(Run, InputsThatNobodyGivesAreRandomOfTheShapeAskedFor) {
  expect_says(folder_.run("run add.onnx"), "input x f32 [1, 4] random, -1 to 1");
  expect_says(folder_.run("run add.onnx --shape x=3,4"), "input x f32 [3, 4] random, -1 to 1");
  expect_says(folder_.run("run add.onnx --shape x=0,4"), "output y f32 [0, 4]");
  ASSERT_EQ(folder_.run("run add.onnx --out first").exit_code, 0);
  ASSERT_EQ(folder_.run("run add.onnx --out second").exit_code, 0);
  EXPECT_EQ(load(folder_, "first", "y"), load(folder_, "second", "y")) << "the seed is fixed";
}

TEST_F(Run, CheckComparesWithinTheTolerance) {
  const std::string line = "run add.onnx --inputs x.safetensors --check ";
  CommandResult result = folder_.run(line + "sum.safetensors");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  expect_says(result, "check y: largest error 0.00e+00");
  expect_says(result, ": ok\n");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor off = floats({1, 4}, {2, 3, 4, 5.5f}), missing = floats({1, 4}, {2, 3, 4, nan});
  save(folder_, "off", {{"y", &off}});
  save(folder_, "nan", {{"y", &missing}});
  result = folder_.run(line + "off");
  EXPECT_EQ(result.exit_code, 1) << result.out << result.error;
  expect_says(result, ": EXCEEDED\n");
  EXPECT_EQ(folder_.run(line + "off --tolerance 0.1").exit_code, 0);
  EXPECT_EQ(folder_.run(line + "off --tolerance 0.05").exit_code, 1);
  EXPECT_EQ(folder_.run(line + "nan").exit_code, 1) << "a number where NaN is expected must not pass";
}

TEST_F(Run, ExpectationsThatDoNotFitTheModelAreTheCallersError) {
  const std::string line = "run add.onnx --inputs x.safetensors --check ";
  const Tensor y = floats({1, 4}, {2, 3, 4, 5}), other = floats({1}, {0}), turned = floats({4, 1}, {2, 3, 4, 5});
  save(folder_, "more", {{"y", &y}, {"z", &other}, {"w", &other}});
  expect_stopped(folder_, line + "more", "more has 3 tensors, the model 1 outputs: none of them is 'w'");
  save(folder_, "turned", {{"y", &turned}});
  expect_stopped(folder_, line + "turned", "[4, 1]");
  save(folder_, "empty", {});
  expect_stopped(folder_, line + "empty", "empty has no tensors");
  expect_stopped(folder_, line + "nowhere", "nowhere: cannot open");
  expect_refused(folder_, line + "sum.safetensors --tolerance -1", "--tolerance");
}

TEST_F(Run, ProfileNamesOperatorsAndAttention) {
  const CommandResult result = folder_.run("run attention.onnx --profile --repeat 3 --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_says(result, "3 runs: median ");
  expect_says(result, "1 thread\n");
  expect_says(result, "operator ");
  expect_says(result, "attention: ");
  expect_says(result, "work inside");
}

TEST_F(Run, TraceIsJson) {
  ASSERT_EQ(folder_.run("run attention.onnx --trace t.json --threads 1").exit_code, 0);
  const json trace = json::parse(folder_.read("t.json"));
  ASSERT_GE(trace.at("traceEvents").size(), 1u);
  bool attention = false;
  for (const json& event : trace["traceEvents"]) {
    attention |= event.at("name").get<std::string>().find("softmax") != std::string::npos ||
                 event.at("name").get<std::string>().find("ttention") != std::string::npos ||
                 event.at("name").get<std::string>().find("context") != std::string::npos;
  }
  EXPECT_TRUE(attention) << folder_.read("t.json");
}

TEST_F(Run, UnfusedRunsTheNodesOfTheFile) {
  const Tensor q = varied({1, 2, 5, 4}, 1), k = varied({1, 2, 5, 4}, 2), v = varied({1, 2, 5, 4}, 3);
  save(folder_, "in.safetensors", {{"q", &q}, {"k", &k}, {"v", &v}});
  const std::string line = "run attention.onnx --inputs in.safetensors --threads 1 --out ";
  const CommandResult fused = folder_.run(line + "fused");
  ASSERT_EQ(fused.exit_code, 0) << fused.error;
  expect_says(fused, "attention fused in 1 of 1");
  expect_says(fused, "5 nodes (1 to run)");
  const CommandResult unfused = folder_.run(line + "unfused --unfused --check fused");
  EXPECT_EQ(unfused.exit_code, 0) << unfused.out << unfused.error;
  expect_says(unfused, "5 nodes (5 to run)");
  expect_does_not_say(unfused, "attention fused");
  EXPECT_NE(load(folder_, "unfused", "out"), std::vector<float>(40, 0));
}

TEST_F(Run, ThreadsDoNotChangeTheResult) {
  const std::string line = "run attention.onnx --shape q=1,2,33,4 k=1,2,33,4 v=1,2,33,4 --repeat 2 --out ";
  ASSERT_EQ(folder_.run(line + "one --threads 1").exit_code, 0);
  const CommandResult result = folder_.run(line + "three --threads 3");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  expect_says(result, "3 threads\n");
  EXPECT_EQ(folder_.read("one"), folder_.read("three"));
}

TEST_F(Run, ForcedImplementationsAreChecked) {
  expect_refused(folder_, "run add.onnx --implementation magic", "--implementation is 'magic', expected one of");
  expect_refused(folder_, "run add.onnx --simd MMX", "MMX");
}

TEST_F(Run, BadUseIsRefused) {
  expect_refused(folder_, "run", "model");
  expect_refused(folder_, "run add.onnx --repeat 0", "--repeat");
  expect_refused(folder_, "run add.onnx --threads 0", "--threads");
  expect_refused(folder_, "run nowhere.onnx", "nowhere.onnx: cannot open: No such file");
  expect_refused(folder_, "run x.safetensors", "x.safetensors: ");
  expect_refused(folder_, "run add.onnx --inputs x.safetensors --out ./x.safetensors", "is an input of this command");
  expect_refused(folder_, "run add.onnx --out a --trace ./a", "./a would be written twice");
  expect_refused(folder_, "run add.onnx --trace no/such/folder", "no/such/folder: cannot write");
}

TEST_F(Run, BadInputsStopItBeforeAnythingIsWritten) {
  const std::string line = "run add.onnx --out y --trace t ";
  expect_stopped(folder_, line + "--shape z=1", "--shape names the input 'z', expected one of x");
  expect_stopped(folder_, line + "--shape x=1,b", "--shape x holds 'b'");
  expect_stopped(folder_, line + "--shape x", "--shape is 'x', expected NAME=");
  expect_stopped(folder_, line + "--shape x=1,5", "5");
  expect_stopped(folder_, line + "--inputs sum.safetensors", "sum.safetensors names the input 'y', expected one of x");
  const Tensor wide = varied({1, 5}, 1), rank3 = varied({1, 1, 4}, 1);
  save(folder_, "wide.safetensors", {{"x", &wide}});
  save(folder_, "rank3.safetensors", {{"x", &rank3}});
  expect_stopped(folder_, line + "--inputs wide.safetensors", "'x'");
  expect_stopped(folder_, line + "--inputs rank3.safetensors", "'x'");
  expect_stopped(folder_, line + "--inputs nowhere.safetensors", "nowhere.safetensors: cannot open");
  expect_stopped(folder_, line + "--inputs x=nowhere.npy", "nowhere.npy: cannot open");
  expect_stopped(folder_, line + "--inputs nowhere.npy", "expected NAME=");
}

TEST_F(Run, UnknownOperatorsAreListedOnceEach) {
  using namespace onnx_bytes;
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string next = "v" + std::to_string(i);
    nodes += node(i % 2 == 0 ? "Mystery" : "Riddle", {last}, {next}, "node " + std::to_string(i));
    last = next;
  }
  folder_.write("unknown.onnx", model(nodes + input("x", kFloat, {"4"}) + output(last, kFloat, {"4"})));
  for (const char* option : {"", " --unfused"}) {
    expect_refused(folder_, "run unknown.onnx" + std::string(option),
                   "2 operators are not supported: Mystery (50 nodes, the first 'node 0'), Riddle (50 nodes, the first "
                   "'node 1')");
  }
}

TEST_F(Run, ANodeWithMoreOutputsThanItsOperatorIsTheFilesError) {
  using namespace onnx_bytes;
  folder_.write("two.onnx", model(node("Relu", {"x"}, {"y", "z"}, "relu") + input("x", kFloat, {"4"}) +
                                  output("y", kFloat, {"4"})));
  for (const char* option : {"", " --unfused"}) {
    expect_stopped(folder_, "run two.onnx --out out" + std::string(option),
                   "node 'relu' (Relu): Relu has 2 outputs, expected at most 1");
  }
}

TEST_F(Run, NamesOfAModelCannotBreakALine) {
  using namespace onnx_bytes;
  const std::string name = "x\n\x1B[31m" + std::string(1, '\0') + std::string(100'000, 'n');
  folder_.write("names.onnx", model(node("Add", {name, name}, {"y"}, name) + input(name, kFloat, {"4"}) +
                                    output("y", kFloat, {"4"})));
  const CommandResult result = folder_.run("run names.onnx");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_LT(result.out.size(), 1000u);
  expect_says(result, "input x\\x0A\\x1B[31m\\x00nnn");
  expect_stopped(folder_, "run names.onnx --shape z=1", "expected one of x\\x0A\\x1B[31m\\x00nnn");
  const Tensor wrong = varied({5}, 1);
  save(folder_, "in.safetensors", {{name, &wrong}});
  expect_stopped(folder_, "run names.onnx --inputs in.safetensors", "x\\x0A\\x1B[31m\\x00nnn");
}

}  // namespace
}  // namespace headway
