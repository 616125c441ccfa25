// The tree obeys rules.h; and a tree that does not is found out, whichever rule it breaks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "headway_test_paths.h"
#include "tests/layers/rules.h"
#include "tests/layers/source_tree.h"

namespace headway::layers {
namespace {

namespace fs = std::filesystem;

TEST(Layers, TheTreeObeysTheRules) {
  EXPECT_GT(source_file_count(HEADWAY_SOURCE_DIR), 550u);
  for (const std::string& violation : violations(HEADWAY_SOURCE_DIR)) ADD_FAILURE() << violation;
}

/// A source tree of its own, gone afterwards.
class MadeTree : public testing::Test {
 protected:
  MadeTree()
      : root_(fs::path(testing::TempDir()) /
              ("headway_layers_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~MadeTree() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write_include(const std::string& path, const std::string& included) {
    write(path, "// A file.\n#include \"" + included + "\"\n");
  }
  /// The one violation of the tree, "" when there is none.
  std::string only_violation() {
    const std::vector<std::string> found = violations(root_);
    EXPECT_LE(found.size(), 1u);
    return found.empty() ? "" : found[0];
  }

  fs::path root_;
};

struct IncludeCase {
  const char* includer;
  const char* included;
  bool allowed;
};

// Written out by hand, so that a slip in the table shows.
const IncludeCase kIncludeCases[] = {
    {"runtime/graph/a.cc", "ops/simd/softmax.h", false},
    {"runtime/graph/a.cc", "headway/attention.h", false},
    {"runtime/graph/a.cc", "headway/graph.h", true},
    {"runtime/graph/a.cc", "runtime/tensor/private.h", true},
    {"runtime/graph/a.cc", "tools/args.h", false},
    {"runtime/graph/a.cc", "fmt/format.h", false},
    {"runtime/graph/a.cc", "google/protobuf/message.h", false},
    {"runtime/onnx/a.cc", "google/protobuf/message.h", true},
    {"runtime/onnx/a.cc", "onnx/onnx_pb.h", true},
    {"runtime/exec/a.cc", "runtime/onnx/import.h", false},
    {"runtime/exec/a.cc", "vector", true},
    {"runtime/exec/a.cc", "boost/any.hpp", false},
    {"runtime/include/headway/a.h", "headway/tensor.h", true},
    {"runtime/include/headway/a.h", "runtime/tensor/private.h", false},
    {"runtime/include/headway/a.h", "omp.h", false},
    {"ops/include/headway/a.h", "headway/tensor.h", true},
    {"ops/include/headway/a.h", "headway/graph.h", false},
    {"ops/include/headway/a.h", "ops/simd/softmax.h", false},
    {"ops/simd/a.cc", "hwy/highway.h", true},
    {"ops/simd/a.cc", "ops/matmul/matmul.h", false},
    {"ops/matmul/a.cc", "hwy/highway.h", false},
    {"ops/matmul/a.cc", "oneapi/dnnl/dnnl.hpp", true},
    {"ops/matmul/a.cc", "ops/simd/softmax.h", true},
    {"ops/matmul/a.cc", "ops/attention/bias.h", false},
    {"ops/attention/a.cc", "oneapi/dnnl/dnnl.hpp", false},
    {"ops/attention/a.cc", "dnnl.hpp", false},
    {"ops/attention/a.cc", "ops/reference/reference.h", true},
    {"ops/attention/a.cc", "headway/graph.h", false},
    {"ops/graph/attention/a.cc", "headway/graph.h", true},
    {"ops/attention/a.cc", "ops/multi_head_attention/packing.h", false},
    {"ops/reference/a.cc", "ops/simd/softmax.h", false},
    {"ops/reference/a.cc", "ops/matmul/matmul.h", false},
    {"ops/multi_head_attention/a.cc", "ops/attention/bias.h", true},
    {"ops/multi_head_attention/a.cc", "headway/session.h", false},
    {"ops/multi_head_attention/a.cc", "runtime/tensor/private.h", false},
    {"ops/multi_head_attention/a.cc", "ops/fusion/match.h", false},
    {"ops/fusion/a.cc", "ops/multi_head_attention/packing.h", true},
    {"ops/fusion/a.cc", "headway/graph.h", true},
    {"ops/graph/register_ops.cc", "headway/operator.h", true},
    {"tools/a.cc", "ops/simd/softmax.h", true},
    {"tools/a.cc", "runtime/tensor/private.h", false},
    {"tools/a.cc", "CLI/CLI.hpp", true},
    {"tools/a.cc", "nanobind/nanobind.h", false},
    {"tools/python/src/core/a.cc", "nanobind/nanobind.h", true},
    {"perf/a.cc", "benchmark/benchmark.h", true},
    {"perf/a.cc", "runtime/tensor/private.h", false},
    {"tests/ops/a.cc", "perf/shapes.h", true},
    {"tests/runtime/a.cc", "runtime/tensor/private.h", true},
    {"tests/runtime/a.cc", "hwy/highway.h", false},
};

TEST_F(MadeTree, WrongIncludesAreFoundAndRightOnesPass) {
  const std::string comment = "// A header.\n";
  for (const char* header : {"error", "tensor", "graph", "operator", "session"}) {
    write("runtime/include/headway/" + std::string(header) + ".h", comment);
  }
  write("ops/include/headway/attention.h", comment);
  write("runtime/tensor/private.h", comment);
  write("ops/simd/softmax.h", comment);
  for (const IncludeCase& c : kIncludeCases) {
    write_include(c.includer, c.included);
    const std::string violation = only_violation();
    EXPECT_EQ(violation.empty(), c.allowed) << c.includer << " including " << c.included << ": " << violation;
    if (!c.allowed) {
      EXPECT_EQ(violation.find(std::string(c.includer) + ":2: includes "), 0u) << violation;
    }
    fs::remove(root_ / c.includer);
  }
}

TEST_F(MadeTree, AHeaderBesideItsIncluderIsKnownByItsPath) {
  write("ops/simd/exp-inl.h", "// A header.\n");
  write_include("ops/simd/exp.cc", "exp-inl.h");
  EXPECT_EQ(only_violation(), "");
  write_include("ops/reference/a.cc", "../simd/exp-inl.h");
  EXPECT_NE(only_violation().find("ops/reference/a.cc:2: includes ops/simd/exp-inl.h"), std::string::npos);
}

TEST_F(MadeTree, SpacesDoNotHideAnInclude) {
  write("ops/attention/a.cc", "// A file.\n#  include <hwy/highway.h>\n");
  EXPECT_NE(only_violation(), "");
}

TEST_F(MadeTree, FormIsChecked) {
  write("ops/a.cc", "int x;\n");
  EXPECT_EQ(only_violation(), "ops/a.cc:1: does not start with a comment");
  write("ops/a.cc", "// A file.\n\tint x;\n");
  EXPECT_EQ(only_violation(), "ops/a.cc:2: has a tab");
  std::string text = "// A file.\n";
  for (int i = 1; i < kMaxLines; ++i) text += "\n";
  write("ops/a.cc", text);
  EXPECT_EQ(only_violation(), "");
  write("ops/a.cc", text + "\n");
  EXPECT_EQ(only_violation(), "ops/a.cc:501: is longer than 500 lines");
  fs::remove(root_ / "ops/a.cc");
  write("tools/a.sh", "#!/bin/sh\necho\n");
  EXPECT_EQ(only_violation(), "tools/a.sh:1: does not start with a comment");
  write("tools/a.sh", "#!/bin/sh\n# A script.\n");
  EXPECT_EQ(only_violation(), "");
}

TEST_F(MadeTree, WordsAreCheckedOutsideTheirFolder) {
  for (const WordRule& rule : kWordRules) {
    const std::string word = std::string(rule.first_half) + std::string(rule.second_half);
    write("README.md", "See `" + word + "x`.\n");
    EXPECT_EQ(only_violation(), "README.md:1: holds " + word);
    fs::remove(root_ / "README.md");
    for (std::string_view folder : rule.from) {
      write(std::string(folder) + "a.cc", "// " + word + "\n");
      EXPECT_EQ(only_violation(), "");
    }
    if (rule.is_path) {
      write("README.md", "See net" + word + "x.\n");
      EXPECT_EQ(only_violation(), "");
      fs::remove(root_ / "README.md");
    }
  }
}

}  // namespace
}  // namespace headway::layers
