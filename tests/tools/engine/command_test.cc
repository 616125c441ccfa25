// headway_engine as a user runs it, and what a config.json may not say.
#include <gtest/gtest.h>

#include <algorithm>

#include "headway_test_paths.h"
#include "tests/runtime/error_of.h"
#include "tests/tools/command/command.h"
#include "tools/engine/config.h"

namespace headway::engine {
namespace {

using testing::error_of;
using testing::expect_contains;

std::string fixture(const std::string& family) {
  return std::string(HEADWAY_SOURCE_DIR) + "/tests/fixtures/decoders/" + family;
}

CommandResult run(const CommandFolder& folder, const std::string& arguments) {
  return folder.shell(std::string(HEADWAY_ENGINE) + " " + arguments);
}

void refused(const CommandFolder& folder, const std::string& arguments, const std::string& says) {
  const CommandResult result = run(folder, arguments);
  EXPECT_EQ(result.exit_code, 2) << arguments;
  EXPECT_EQ(result.out, "") << arguments;
  expect_contains(result.error, says);
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

TEST(EngineCommand, GeneratesForRequestsAndForAPrompt) {
  const CommandFolder folder;
  folder.write("r.jsonl", "{\"id\": \"x\", \"prompt\": [3, 4, 5], \"max_new_tokens\": 2}\n\n{\"prompt\": [7]}\n");
  const CommandResult both = run(folder, fixture("llama") + " --requests r.jsonl --max-new-tokens 6 --threads 1");
  EXPECT_EQ(both.exit_code, 0) << both.error;
  expect_contains(both.out, "{\"id\":\"x\",\"tokens\":[");
  expect_contains(both.out, "{\"id\":\"1\",\"tokens\":[");
  expect_contains(both.error, "8 generated");
  const CommandResult one = run(folder, fixture("llama") + " --prompt 7 --max-new-tokens 6 --threads 1");
  const std::string tokens = one.out.substr(one.out.find("tokens"));
  expect_contains(both.out, tokens);
  const CommandResult sampled =
      run(folder, fixture("llama") + " --prompt 7 --max-new-tokens 6 --temperature 5 --seed 1");
  EXPECT_EQ(sampled.exit_code, 0);
  EXPECT_NE(sampled.out, one.out);
  expect_contains(run(folder, fixture("qwen3") + " --explain").out, "epilogue silu of the gate");
}

TEST(EngineCommand, RefusesInOneLine) {
  const CommandFolder folder;
  const std::string model = fixture("gpt2");
  refused(folder, "nowhere --prompt 1", "nowhere/config.json: cannot be read");
  refused(folder, model + " --prompt 1,,2", "--prompt has ',2', expected token ids");
  refused(folder, model + " --prompt 99", "token 99, expected below vocab_size = 96");
  refused(folder, model + " --prompt 1 --max-new-tokens 500", "expected at most 128");
  folder.write("r.jsonl", "{\"prompt\": [1]}\n{\"prompt\": [1], \"max_tokens\": 3}\n");
  refused(folder, model + " --requests r.jsonl", "r.jsonl, line 2: max_tokens is not known");
  folder.write("r.jsonl", "{\"prompt\": [1.5]}\n");
  refused(folder, model + " --requests r.jsonl", "r.jsonl, line 1: prompt is 1.5, expected a whole number");
  folder.write("r.jsonl", "nonsense\n");
  refused(folder, model + " --requests r.jsonl", "line 1: is not a JSON object");
}

std::string config_error(const std::string& text, ErrorCode code = ErrorCode::kInvalidArgument) {
  const CommandFolder folder;
  folder.write("config.json", text);
  return error_of([&] { read_config(folder.path("config.json")); }, code);
}

TEST(EngineConfig, NamesTheFieldThatIsWrong) {
  expect_contains(config_error("[]"), "is not a JSON object");
  expect_contains(config_error("{\"model_type\": \"t5\", \"vocab_size\": 5}", ErrorCode::kUnsupported),
                  "model_type is t5");
  expect_contains(config_error("{\"model_type\": \"gpt2\", \"vocab_size\": -5}"), "vocab_size is -5");
  expect_contains(config_error("{\"model_type\": \"gpt2\", \"vocab_size\": 5, \"n_embd\": 10, \"n_head\": 3}"),
                  "n_embd is 10, expected a multiple of n_head = 3");
  const std::string llama =
      "\"model_type\": \"llama\", \"vocab_size\": 9, \"hidden_size\": 8, \"intermediate_size\": 8, "
      "\"num_attention_heads\": 2, \"max_position_embeddings\": 32, \"num_hidden_layers\": 2";
  expect_contains(config_error("{" + llama + ", \"num_key_value_heads\": 4}"), "multiple of num_key_value_heads = 4");
  expect_contains(config_error("{" + llama + ", \"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}}",
                               ErrorCode::kUnsupported),
                  "rope_type is dynamic");
  expect_contains(config_error("{" + llama + ", \"hidden_act\": \"mish\"}", ErrorCode::kUnsupported),
                  "hidden_act is mish");
  expect_contains(config_error("{" + llama + ", \"sliding_window\": 4, \"layer_types\": [\"full_attention\"]}"),
                  "layer_types has 1 entries, expected num_hidden_layers = 2");
}

TEST(EngineConfig, ReadsTheOlderSpelling) {
  const CommandFolder folder;
  folder.write(
      "config.json",
      "{\"model_type\": \"gemma3_text\", \"vocab_size\": 9, \"hidden_size\": 8, \"intermediate_size\": 8, "
      "\"num_attention_heads\": 2, \"head_dim\": 4, \"max_position_embeddings\": 32, \"num_hidden_layers\": 3, "
      "\"rope_theta\": 1000000, \"rope_local_base_freq\": 10000, \"sliding_window\": 5, "
      "\"sliding_window_pattern\": 3, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}}");
  const DecoderConfig config = read_config(folder.path("config.json"));
  ASSERT_EQ(config.rotary.size(), 2u);
  EXPECT_EQ(config.rotary[0].base, 1e6);
  EXPECT_EQ(config.rotary[0].scaling.factor, 8);
  EXPECT_EQ(config.rotary[1].base, 1e4);
  ASSERT_EQ(config.layers.size(), 3u);
  EXPECT_EQ(config.layers[1].window.left, 4);
  EXPECT_EQ(config.layers[1].rotary, 1u);
  EXPECT_EQ(config.layers[2].window.left, Window::kOpen);
  EXPECT_EQ(config.layers[2].rotary, 0u);
}

}  // namespace
}  // namespace headway::engine
