// The live page: layers that it computes in WebAssembly against the native library, in a browser and in node, and the
// page used in a browser. Needs Emscripten, which no other part of the build does.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "headway_test_paths.h"
#include "tests/tools/command/command.h"

namespace headway {
namespace {

const std::string kFolder = HEADWAY_SOURCE_DIR "/tests/tools/web/";

/// page.html in the folder; the reason where it cannot be built here.
std::string build_page(const CommandFolder& folder) {
  for (const char* program : {"em++", "cmake", "python3"}) {
    if (folder.shell(std::string("command -v ") + program).exit_code != 0) return std::string("no ") + program;
  }
  if (folder.shell("test -f ${HEADWAY_HWY_INCLUDE:-/usr/include}/hwy/highway.h").exit_code != 0)
    return "no hwy/highway.h";
  const CommandResult built = folder.shell(HEADWAY_SOURCE_DIR "/tools/web.sh page.html");
  EXPECT_EQ(built.exit_code, 0) << built.error;
  return {};
}

/// Every layer of layers.json, computed natively from the same weights and input.
void expect_native(const CommandFolder& folder, std::size_t layers) {
  const nlohmann::json written = nlohmann::json::parse(folder.read("layers.json"));
  ASSERT_EQ(written.size(), layers);
  for (const nlohmann::json& layer : written) {
    const std::string name = layer["name"];
    const CommandResult checked =
        folder.run("attend --weights " + name + ".weights --input " + name + ".input --heads " + layer["heads"].dump() +
                   (layer["causal"] ? " --causal" : "") + " --per-head --check " + name +
                   ".page --output-bound 1e-5 --weights-bound 1e-5");
    EXPECT_EQ(checked.exit_code, 0) << layer << checked.out << checked.error;
    std::cout << layer << "\n" << checked.out;
  }
}

TEST(LivePage, InNode) {
  const CommandFolder folder;
  if (const std::string missing = build_page(folder); !missing.empty()) GTEST_SKIP() << missing;
  if (folder.shell("command -v node").exit_code != 0) GTEST_SKIP() << "no node";
  const CommandResult result = folder.shell("node " + kFolder + "forward.mjs page.html . " + kFolder);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  expect_native(folder, 4);
  const nlohmann::json written = nlohmann::json::parse(folder.read("layers.json"));
  EXPECT_EQ(written[0]["target"], "WASM");
  EXPECT_EQ(written[2]["target"], "SCALAR");
}

TEST(LivePage, RefusesWhatItCannotWrite) {
  const CommandFolder folder;
  for (const char* arguments : {"--help-me", "a b", "."}) {
    const CommandResult result = folder.shell(std::string(HEADWAY_SOURCE_DIR "/tools/web.sh ") + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.error.find("web.sh: "), 0u) << result.error;
    EXPECT_EQ(result.error.find('\n'), result.error.size() - 1) << result.error;
  }
  EXPECT_TRUE(folder.files().empty());
}

TEST(ViewInABrowser, TheLivePage) {
  const CommandFolder folder;
  if (const std::string missing = build_page(folder); !missing.empty()) GTEST_SKIP() << missing;
  const CommandResult result = folder.shell("python3 " + kFolder + "live_page.py page.html . ${PICTURES:-}");
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  std::cout << result.out;
  expect_native(folder, 7);
}

}  // namespace
}  // namespace headway
