// Folders of cases whose JSON or tensors cannot be right: refused in one line, whatever they say.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

using nlohmann::json;

class HostileManifests : public testing::Test {
 protected:
  void write_mask(const json& expanded_to, const json& strides) {
    const Tensor q = floats({1, 1, 1, 1}, {0}), mask = bools({1}, {1});
    save(folder_, "all.safetensors",
         {{"000.query", &q}, {"000.key", &q}, {"000.value", &q}, {"000.output", &q}, {"000.attn_mask", &mask}});
    folder_.write("configs.json", json{{"file", "all.safetensors"},
                                       {"configs",
                                        {{{"id", 0},
                                          {"query", json::array()},
                                          {"attn_mask_expanded_to", expanded_to},
                                          {"attn_mask_strides", strides}}}}}
                                      .dump());
  }
  /// A model that doubles x [2, 3, 4], as a sentence encoder with these tensors beside.
  void write_encoder(const Tensor& mask, const Tensor& hidden, const Tensor& embedding) {
    using namespace onnx_bytes;
    const Strings dims = {"batch", "tokens", "width"};
    folder_.write("m.onnx", model(node("Add", {"x", "x"}, {"last_hidden_state"}, "add") + input("x", kFloat, dims) +
                                  output("last_hidden_state", kFloat, dims)));
    const Tensor x = varied({2, 3, 4}, 1);
    save(folder_, "m.inputs.safetensors", {{"x", &x}, {"attention_mask", &mask}});
    save(folder_, "m.expected.safetensors", {{"last_hidden_state", &hidden}, {"sentence_embedding", &embedding}});
    folder_.write("manifest.json", R"({"file": "m.onnx", "layers": 0})");
  }
  /// What the case of one sentence says.
  void expect_case_fails(const std::string& says) {
    const CommandResult result = folder_.run("conformance .");
    EXPECT_EQ(result.exit_code, 1) << result.out << result.error;
    EXPECT_NE(result.out.find(says), std::string::npos) << result.out;
  }

  CommandFolder folder_;
};

// The extent of the memory overflowed, or was allocated as it was asked for.
TEST_F(HostileManifests, StridesOfAMaskBeyondAnyMemory) {
  for (const json& strides : {json{1073741824, 0}, json{1, 1}}) {
    write_mask({4611686018427387904, 1}, strides);
    expect_refused(folder_, "conformance .", "attn_mask_strides");
  }
  write_mask({1073741824, 1}, {1, 1});
  expect_refused(folder_, "conformance .", "need memory for more than 268435456 elements");
  write_mask({1, 1}, {-1, 0});
  expect_refused(folder_, "conformance .", "attn_mask_strides has -1, expected 0 or more");
}

// The description read the last of no dims.
TEST_F(HostileManifests, ScalarsForQueryKeyAndValue) {
  const Tensor one = floats({}, {0});
  save(folder_, "all.safetensors", {{"000.query", &one}, {"000.key", &one}, {"000.value", &one}, {"000.output", &one}});
  folder_.write("configs.json", R"({"file": "all.safetensors", "configs": [{"id": 0, "query": []}]})");
  expect_refused(folder_, "conformance .", "case 000. has a query, key or value of rank 0, expected at least 2");
}

// The first size of no dims was read as the number of sentences.
TEST_F(HostileManifests, AMaskOfSentencesThatIsAScalar) {
  write_encoder(floats({}, {1}), floats({2, 3, 4}, std::vector<float>(24)), floats({2, 4}, std::vector<float>(8)));
  expect_refused(folder_, "conformance .", "attention_mask has rank 0, expected 2");
}

// The mask and the embedding were read past their ends.
TEST_F(HostileManifests, AMaskOrAnEmbeddingShorterThanTheSentence) {
  const Tensor hidden = floats({2, 3, 4}, std::vector<float>(24));
  write_encoder(floats({2, 2}, {1, 1, 1, 1}), hidden, floats({2, 4}, std::vector<float>(8)));
  expect_case_fails("last_hidden_state of a sentence is [3, 4] with a mask [2], expected [tokens, width] and [tokens]");
  write_encoder(floats({2, 3}, std::vector<float>(6, 1)), hidden, floats({2, 3}, std::vector<float>(6)));
  expect_case_fails("sentence_embedding has 3 numbers, expected 4");
}

}  // namespace
}  // namespace headway
