// The pages of headway profile and headway run --profile: layers by the names of nodes, and the pages in a browser.
#include <gtest/gtest.h>

#include <string>

#include "headway_test_paths.h"
#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"
#include "tools/view/node_layer.h"

namespace headway {
namespace {

TEST(ProfilePage, LayersByTheNamesOfNodes) {
  EXPECT_EQ(tools::layer_of("/encoder/layer.3/attention/MatMul"), 3);
  EXPECT_EQ(tools::layer_of("/model/layers.17/mlp/up_proj/MatMul_1"), 17);
  EXPECT_EQ(tools::layer_of("/h.0/attn/Softmax"), 0);
  EXPECT_EQ(tools::layer_of("blocks/11/norm1/Add_4"), 11);
  EXPECT_EQ(tools::layer_of("/pooler/Gemm"), -1);
  EXPECT_EQ(tools::layer_of("MatMul_214"), -1) << "a counter of nodes is no layer";
  EXPECT_EQ(tools::layer_of("/conv1d/Conv2"), -1);
  EXPECT_EQ(tools::layer_of(""), -1);
}

void use_profile(const CommandFolder& folder, const std::string& nodes) {
  folder.write("expected.json", "{\"nodes\": " + nodes + "}");
  const CommandResult result =
      folder.shell("command -v python3 >/dev/null || { echo no python3; exit 77; }; python3 " HEADWAY_SOURCE_DIR
                   "/tests/tools/view/profile_page.py page.html expected.json ${PICTURES:-}");
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
}

TEST(ProfilePageInABrowser, ALayer) {
  const CommandFolder folder;
  ASSERT_EQ(folder.run("profile --embed-dim 64 --seq 32 --heads 4 --threads 2 --rounds 3 --html page.html").exit_code,
            0);
  use_profile(folder, "false");
}

TEST(ProfilePageInABrowser, AModel) {
  const CommandFolder folder;
  folder.write("model.onnx", onnx_bytes::two_attentions_model());
  const Tensor q = varied({1, 2, 12, 4}, 1), k = varied({1, 2, 12, 4}, 2), v = varied({1, 2, 12, 4}, 3);
  save(folder, "x", {{"q", &q}, {"k", &k}, {"v", &v}});
  ASSERT_EQ(folder.run("run model.onnx --inputs x --profile --threads 2 --repeat 3 --html page.html").exit_code, 0);
  use_profile(folder, "true");
}

}  // namespace
}  // namespace headway
