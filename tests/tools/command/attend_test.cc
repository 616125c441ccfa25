// headway attend on small tensors with exact answers, on a real layer, and on input that must be refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "headway_test_paths.h"
#include "tests/tools/command/command.h"

namespace headway {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

// The uniform probe: with Q = K = 0 an output row is the mean of the visible value rows.
struct Probe {
  Tensor query = floats({1, 1, 2, 2}, {0, 0, 0, 0});
  Tensor key = floats({1, 1, 3, 2}, {0, 0, 0, 0, 0, 0});
  Tensor value = floats({1, 1, 3, 2}, {1, 10, 2, 20, 3, 30});
};

TEST(Attend, NeverWritesOverWhatItReads) {
  const CommandFolder folder;
  const Probe probe;
  save(folder, "in", {{"query", &probe.query}, {"key", &probe.key}, {"value", &probe.value}});
  const std::string before = folder.read("in");
  expect_refused(folder, "attend --input in --out ./in", "./in is an input of this command");
  EXPECT_EQ(folder.read("in"), before);
  expect_refused(folder, "sweep --embed-dim 8 --seq 2 --heads 1 --json a --csv ./a", "./a would be written twice");
}

TEST(Attend, CoreMasksAttendWhereTrueAndEmptyRowsAreZero) {
  const CommandFolder folder;
  const Probe probe;
  const Tensor mask = bools({2, 3}, {0, 0, 0, 1, 0, 1});
  save(folder, "in", {{"query", &probe.query}, {"key", &probe.key}, {"value", &probe.value}, {"attn_mask", &mask}});
  const CommandResult result = folder.run("attend --input in --out out --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(load(folder, "out", "output"), (std::vector<float>{0, 0, 2, 20}));
  EXPECT_EQ(load(folder, "out", "weights"), (std::vector<float>{0, 0, 0, 0.5f, 0, 0.5f}));
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"in", "out"}));
}

TEST(Attend, CoreCausalIsTopLeft) {
  const CommandFolder folder;
  const Tensor query = floats({1, 1, 2, 1}, {0, 0});
  const Tensor key = floats({1, 1, 4, 1}, {0, 0, 0, 0});
  const Tensor value = floats({1, 1, 4, 1}, {1, 2, 3, 4});
  save(folder, "in", {{"query", &query}, {"key", &key}, {"value", &value}});
  ASSERT_EQ(folder.run("attend --input in --out out --causal --no-weights").exit_code, 0);
  EXPECT_EQ(load(folder, "out", "output"), (std::vector<float>{1, 1.5f}));
  EXPECT_FALSE(SafetensorsFile::open(folder.path("out")).has("weights"));
}

TEST(Attend, CoreGroupsHeadsByDivision) {
  const CommandFolder folder;
  const Tensor query = floats({1, 4, 1, 1}, {0, 0, 0, 0});
  const Tensor key = floats({1, 2, 1, 1}, {0, 0});
  const Tensor value = floats({1, 2, 1, 1}, {10, 20});
  save(folder, "in", {{"query", &query}, {"key", &key}, {"value", &value}});
  ASSERT_EQ(folder.run("attend --input in --out out --heads 4 --kv-heads 2").exit_code, 0);
  EXPECT_EQ(load(folder, "out", "output"), (std::vector<float>{10, 10, 20, 20}));
  expect_refused(folder, "attend --input in --heads 3", "--heads is 3, query has 4");
}

// A layer of E = 4 whose queries and keys are 0 and whose values and output are the identity: another uniform probe.
struct Layer {
  Layer() {
    std::vector<float> in(48, 0), out(16, 0);
    for (std::size_t i = 0; i < 4; ++i) in[(8 + i) * 4 + i] = out[i * 4 + i] = 1;
    in_proj = floats({12, 4}, in);
    out_proj = floats({4, 4}, out);
    bias = floats({4}, {100, 200, 300, 400});
    query = floats({1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  }
  void save_weights(const CommandFolder& folder, const std::string& prefix = "") const {
    save(folder, "w",
         {{prefix + "in_proj_weight", &in_proj},
          {prefix + "out_proj.weight", &out_proj},
          {prefix + "out_proj.bias", &bias}});
  }
  Tensor in_proj, out_proj, bias, query;
};

TEST(Attend, LayerMasksHideWhereTrue) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder);
  const Tensor padding = bools({1, 3}, {0, 0, 1});
  const Tensor mask =
      bools({2, 3, 3}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // head 0 row 0 loses key 1
  save(folder, "in", {{"query", &layer.query}, {"key_padding_mask", &padding}, {"attn_mask", &mask}});
  const CommandResult result = folder.run("attend --weights w --heads 2 --input in --out out --per-head");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::vector<float> expected = {101, 202, 305, 406, 103, 204, 305, 406, 103, 204, 305, 406};
  const std::vector<float> got = load(folder, "out", "output");
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4) << i;
  const std::vector<float> weights = load(folder, "out", "weights");
  ASSERT_EQ(weights.size(), 18u);
  EXPECT_EQ(weights[0], 1.0f);
  EXPECT_EQ(weights[9], 0.5f);
}

TEST(Attend, WeightsMayShareAPrefixAndBeSplit) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder, "encoder.layer.0.self_attn.");
  save(folder, "in", {{"query", &layer.query}});
  ASSERT_EQ(folder.run("attend --weights w --heads 2 --input in --out packed").exit_code, 0);
  const Tensor zero = floats({4, 4}, std::vector<float>(16, 0));
  save(folder, "w",
       {{"m.q_proj.weight", &zero},
        {"m.k_proj.weight", &zero},
        {"m.v_proj.weight", &layer.out_proj},
        {"m.o_proj.weight", &layer.out_proj},
        {"m.o_proj.bias", &layer.bias}});
  ASSERT_EQ(folder.run("attend --weights w --heads 2 --input in --out split").exit_code, 0);
  EXPECT_EQ(load(folder, "packed", "output"), load(folder, "split", "output"));
}

TEST(Attend, CheckComparesAndCountsEmptyRowsApart) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder);
  const Tensor mask = bools({3, 3}, {1, 1, 1, 0, 0, 0, 0, 0, 0});  // row 0 sees nothing
  save(folder, "in", {{"query", &layer.query}, {"attn_mask", &mask}});
  const std::vector<float> mean = {105, 206, 307, 408};
  const auto expected = [&](float first, float last) {
    std::vector<float> values(4, first);
    values.insert(values.end(), mean.begin(), mean.end());
    values.insert(values.end(), mean.begin(), mean.end());
    values.back() = last;
    return floats({1, 3, 4}, values);
  };
  const std::string check = "attend --weights w --heads 2 --input in --out out --output-bound 1e-4 --check ";
  const Tensor good = expected(kNan, 408), wrong = expected(kNan, 408.5f), nan = expected(kNan, kNan);

  save(folder, "expected", {{"output", &wrong}});
  CommandResult result = folder.run(check + "expected");
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("5.000e-01"), std::string::npos) << result.out;
  EXPECT_FALSE(std::filesystem::exists(folder.path("out")));

  save(folder, "expected", {{"output", &nan}});
  EXPECT_EQ(folder.run(check + "expected").exit_code, 1) << "NaN where keys are visible must not pass";

  save(folder, "expected", {{"output", &good}});
  result = folder.run(check + "expected");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("1 empty rows"), std::string::npos) << result.out;
  const std::vector<float> output = load(folder, "out", "output");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(output[i], layer.bias.data<float>()[i]) << "zero heads, then the bias";

  expect_refused(folder, check + "in", "attn_mask");
}

TEST(Attend, BadInputIsRefusedAndNothingIsWritten) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder);
  const Tensor lengths = [] {
    Tensor tensor(DataType::kI64, {3, 3});
    std::fill_n(tensor.data<std::int64_t>(), 9, 1);
    return tensor;
  }();
  const Tensor rank4 = varied({1, 1, 3, 3}, 1), narrow = varied({1, 3, 5}, 1), longer = varied({3, 4}, 1);
  const Tensor long_padding = bools({1, 4}, {0, 0, 0, 0});
  const std::string line = "attend --weights w --input in --out out --heads ";

  save(folder, "in", {{"query", &layer.query}});
  expect_refused(folder, line + "3", "multiple of heads = 3");
  expect_refused(folder, line + "0", "--heads");
  expect_refused(folder, "attend --weights w --input in --out out", "--heads");
  expect_refused(folder, line + "2 --kv-heads 1", "expected kv-heads");
  expect_refused(folder, line + "2 --window 1", "--window");
  expect_refused(folder, line + "2 --softcap -1", "--softcap");
  expect_refused(folder, line + "2 --check nothing", "nothing");
  expect_refused(folder, line + "2 --no-weights --per-head", "--per-head");

  save(folder, "in", {{"query", &layer.query}, {"attn_mask", &rank4}});
  expect_refused(folder, line + "2", "attn_mask has rank 4, expected 2 or 3");
  save(folder, "in", {{"query", &layer.query}, {"attn_mask", &longer}});
  expect_refused(folder, line + "2", "attn_mask has shape [3, 4], expected [3, 3]");
  save(folder, "in", {{"query", &layer.query}, {"attn_mask", &lengths}});
  expect_refused(folder, line + "2", "attn_mask is i64, expected bool or f32");
  save(folder, "in", {{"query", &layer.query}, {"key_padding_mask", &long_padding}});
  expect_refused(folder, line + "2", "key_padding_mask has shape [1, 4], expected [1, 3]");
  save(folder, "in", {{"query", &narrow}});
  expect_refused(folder, line + "2", "query has width 5, expected 4");
  save(folder, "in", {{"query", &layer.query}, {"attn_masks", &rank4}});
  expect_refused(folder, line + "2", "attn_masks");
  save(folder, "in", {{"key", &layer.query}});
  expect_refused(folder, line + "2", "query");

  save(folder, "in", {{"query", &layer.query}});
  const Tensor short_weight = varied({11, 4}, 1), short_bias = varied({3}, 1);
  save(folder, "w", {{"in_proj_weight", &short_weight}, {"out_proj.weight", &layer.out_proj}});
  expect_refused(folder, line + "2", "in_proj_weight has shape [11, 4], expected [12, 4]");
  save(folder, "w", {{"in_proj_weight", &layer.in_proj}});
  expect_refused(folder, line + "2", "out_proj.weight");
  save(folder, "w",
       {{"in_proj_weight", &layer.in_proj}, {"out_proj.weight", &layer.out_proj}, {"out_proj.bias", &short_bias}});
  expect_refused(folder, line + "2", "out_proj.bias has shape [3], expected [4]");
  save(folder, "w",
       {{"in_proj_weight", &layer.in_proj}, {"out_proj.weight", &layer.out_proj}, {"q_norm.weight", &short_bias}});
  expect_refused(folder, line + "2", "q_norm.weight");
  save(folder, "w", {{"a.in_proj_weight", &layer.in_proj}, {"b.in_proj_weight", &layer.in_proj}});
  expect_refused(folder, line + "2", "--prefix");
}

TEST(Attend, DamagedFilesAreRefused) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder);
  save(folder, "in", {{"query", &layer.query}});
  const std::string weights = folder.read("w"), input = folder.read("in");
  const std::string line = "attend --weights w --input in --out out --heads 2";
  ASSERT_EQ(folder.run("attend --weights w --input in --heads 2").exit_code, 0);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{8}, weights.size() / 2, weights.size() - 1}) {
    folder.write("w", weights.substr(0, size));
    expect_refused(folder, line, "w: ");
  }
  folder.write("w", weights);
  for (std::size_t at = 0; at < 8; ++at) {
    std::string bad = input;
    bad[at] = static_cast<char>(0xFF);
    folder.write("in", bad);
    expect_refused(folder, line, "in: ");
  }
}

TEST(Attend, CountersBesideTheWeightsStopNobody) {
  const CommandFolder folder;
  const Layer layer;
  layer.save_weights(folder);
  save(folder, "in", {{"query", &layer.query}});
  const std::string line = "attend --weights w --heads 2 --input in --out ";
  ASSERT_EQ(folder.run(line + "without").exit_code, 0);
  // The same file with a tensor of a type that a tensor cannot have.
  const std::string before = folder.read("w");
  const std::size_t end = before.find("}}") + 1;
  std::string header = before.substr(8, end - 8);
  const std::size_t data_bytes = before.size() - 8 - static_cast<unsigned char>(before[0]) -
                                 256 * static_cast<std::size_t>(static_cast<unsigned char>(before[1]));
  header += ",\"step\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[" + std::to_string(data_bytes) + "," +
            std::to_string(data_bytes + 4) + "]}}";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() % 256);
  file[1] = static_cast<char>(header.size() / 256);
  folder.write("w", file + header + before.substr(before.size() - data_bytes) + "step");
  const CommandResult result = folder.run(line + "with");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(folder.read("with"), folder.read("without"));
}

TEST(Attend, RealLayerMatchesItsFixture) {
  const std::string fixture = std::string(HEADWAY_SOURCE_DIR) + "/tests/fixtures/minilm_layer0";
  if (!std::filesystem::exists(fixture + "/weights.safetensors")) GTEST_SKIP() << "no fixture";
  const CommandFolder folder;
  const std::string line = "attend --weights '" + fixture + "/weights.safetensors' --input '" + fixture +
                           "/input.safetensors' --check '" + fixture + "/expected.safetensors' --heads ";
  // The f32 projections alone move a weight of this layer by 1.6e-6; torch's own f32 differs by 2.0e-6.
  const CommandResult result = folder.run(line + "12 --weights-bound 5e-6");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("[4, 12, 49, 49]"), std::string::npos) << "a rank-4 expectation implies per head";
  EXPECT_EQ(folder.run(line + "12 --output-bound 1e-9").exit_code, 1);
  expect_refused(folder, line + "6", "expected weights has shape [4, 12, 49, 49], the result has [4, 6, 49, 49]");
  expect_refused(folder, line + "7 --out out", "heads = 7");
}

}  // namespace
}  // namespace headway
