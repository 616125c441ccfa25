// headway conformance on folders made here: both layouts, what must pass, and what must not.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/tools/command/command.h"

namespace headway {
namespace {

using nlohmann::json;

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

json sdpa_config(int id) {
  return {{"id", id},
          {"query", json::array()},
          {"attn_mask_expanded_to", nullptr},
          {"attn_mask_strides", nullptr},
          {"is_causal", false},
          {"scale", nullptr},
          {"enable_gqa", false}};
}

TEST(Conformance, ScaledDotProductAttentionOfAnyRank) {
  const CommandFolder folder;
  // 0: rank 2. 1: rank 5 with a mask that repeats over the second axis. 2: no keys at all. 3: mask laid out backwards.
  const Tensor q2 = floats({2, 1}, {0, 0}), v2 = floats({2, 1}, {1, 3}), out2 = floats({2, 1}, {2, 2});
  const Tensor q5 = floats({2, 2, 1, 1, 1}, {0, 0, 0, 0}), k5 = floats({2, 2, 1, 2, 1}, std::vector<float>(8, 0));
  const Tensor v5 = floats({2, 2, 1, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}), mask5 = bools({2, 1, 1, 1, 2}, {1, 0, 0, 1});
  const Tensor out5 = floats({2, 2, 1, 1, 1}, {1, 3, 6, 8});
  const Tensor q0 = floats({1, 1, 2, 1}, {0, 0}), k0 = floats({1, 1, 0, 1}, {}), out0 = floats({1, 1, 2, 1}, {0, 0});
  const Tensor q3 = floats({1, 1, 2, 1}, {0, 0}), v3 = floats({1, 1, 2, 1}, {1, 3}),
               mask3 = bools({2, 2}, {1, 0, 1, 1});
  const Tensor out3 = floats({1, 1, 2, 1}, {1, 2});
  save(folder, "all.safetensors",
       {{"000.query", &q2},
        {"000.key", &q2},
        {"000.value", &v2},
        {"000.output", &out2},
        {"001.query", &q5},
        {"001.key", &k5},
        {"001.value", &v5},
        {"001.attn_mask", &mask5},
        {"001.output", &out5},
        {"002.query", &q0},
        {"002.key", &k0},
        {"002.value", &k0},
        {"002.output", &out0},
        {"003.query", &q3},
        {"003.key", &q3},
        {"003.value", &v3},
        {"003.attn_mask", &mask3},
        {"003.output", &out3}});
  json configs = {sdpa_config(0), sdpa_config(1), sdpa_config(2), sdpa_config(3)};
  configs[3]["attn_mask_expanded_to"] = {1, 1, 2, 2};
  configs[3]["attn_mask_strides"] = {4, 4, 1, 2};
  folder.write("configs.json", json{{"file", "all.safetensors"}, {"configs", configs}}.dump());
  for (const char* implementation : {"tiled", "reference"}) {
    const CommandResult result = folder.run(std::string("conformance . --implementation ") + implementation);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
    EXPECT_EQ(last_line(result.out), "4 passed, 0 failed");
  }
}

TEST(Conformance, WrongExpectationsFail) {
  const CommandFolder folder;
  const Tensor q = floats({1, 1, 2, 1}, {0, 0}), v = floats({1, 1, 2, 1}, {1, 3}), good = floats({1, 1, 2, 1}, {2, 2});
  const Tensor wrong = floats({1, 1, 2, 1}, {2, 2.001f});
  const Tensor nan = floats({1, 1, 2, 1}, {2, std::numeric_limits<float>::quiet_NaN()});
  const Tensor shape = floats({1, 2, 1, 1}, {2, 2});
  std::map<std::string, const Tensor*> tensors;
  json configs = json::array();
  int id = 0;
  for (const Tensor* expected : {&good, &wrong, &nan, &shape}) {
    const std::string prefix = "00" + std::to_string(id) + ".";
    tensors[prefix + "query"] = tensors[prefix + "key"] = &q;
    tensors[prefix + "value"] = &v;
    tensors[prefix + "output"] = expected;
    configs.push_back(sdpa_config(id++));
  }
  save(folder, "all.safetensors", tensors);
  folder.write("configs.json", json{{"file", "all.safetensors"}, {"configs", configs}}.dump());
  const CommandResult result = folder.run("conformance .");
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_EQ(last_line(result.out), "1 passed, 3 failed") << result.out;
}

TEST(Conformance, LayerWithEmptyRowsAndSharedTensors) {
  const CommandFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // E = 2, H = 2, sequence first, queries and keys 0, values and output the identity; row 1 of head 1 sees nothing.
  const Tensor in_proj = floats({6, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}), out_proj = floats({2, 2}, {1, 0, 0, 1});
  const Tensor x = floats({2, 1, 2}, {1, 10, 3, 30});
  const Tensor mask = bools({2, 2, 2}, {0, 1, 0, 0, 0, 0, 1, 1});
  const Tensor output = floats({2, 1, 2}, {1, 20, nan, nan});
  const Tensor weights = floats({1, 2, 2, 2}, {1, 0, 0.5f, 0.5f, 0.5f, 0.5f, nan, nan});
  save(folder, "mha.safetensors",
       {{"007.in_proj_weight", &in_proj},
        {"007.out_proj.weight", &out_proj},
        {"007.query", &x},
        {"007.attn_mask", &mask},
        {"007.output", &output},
        {"007.weights", &weights}});
  const json config = {{"id", 7},
                       {"file", "mha.safetensors"},
                       {"embed_dim", 2},
                       {"num_heads", 2},
                       {"kdim", nullptr},
                       {"vdim", nullptr},
                       {"batch_first", false},
                       {"add_zero_attn", false},
                       {"is_causal", false},
                       {"need_weights", true},
                       {"average_attn_weights", false},
                       {"key", "query"},
                       {"value", "key"}};
  folder.write("configs.json", json{{"configs", {config}}}.dump());
  const CommandResult result = folder.run("conformance .");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("2 rows"), std::string::npos) << result.out;
  EXPECT_EQ(last_line(result.out), "1 passed, 0 failed");
}

TEST(Conformance, FoldersThatAreNot) {
  const CommandFolder folder;
  folder.write("configs.json", "{");
  expect_refused(folder, "conformance .", "not JSON");
  folder.write("configs.json", "[]");
  expect_refused(folder, "conformance .", "configs");
  folder.write("configs.json", R"({"configs":[{"id":0,"file":"missing.safetensors"}]})");
  expect_refused(folder, "conformance .", "missing.safetensors");
  folder.write("configs.json", R"({"configs":[{"id":"x","query":[]}]})");
  expect_refused(folder, "conformance .", "file");
  folder.write("configs.json", R"({"configs":[]})");
  EXPECT_EQ(folder.run("conformance .").exit_code, 1) << "nothing checked is no success";
}

}  // namespace
}  // namespace headway
