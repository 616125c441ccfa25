// headway heads: planted roles are named and no others, random heads have none, and every number against one that is
// computed here from the probabilities of a fixture.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "headway/safetensors.h"
#include "headway_test_paths.h"
#include "tests/support/random_data.h"
#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

using nlohmann::json;

json heads_of(const CommandFolder& folder, const std::string& arguments) {
  const CommandResult result = folder.run("heads " + arguments + " --json heads.json");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return json::parse(folder.read("heads.json"));
}

std::string lines(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token + '\n';
  return text;
}

/// A layer of four heads of width 16 whose weights are written by hand. Its input says of each position where it is,
/// which token it has and which token comes before.
struct Planted {
  static constexpr std::int64_t kLength = 14, kTokens = 7, kWidth = 16, kHeads = 4, kEmbed = kHeads * kWidth;
  static constexpr std::int64_t kPosition = 0, kToken = kLength, kBefore = kToken + kTokens, kOne = kBefore + kTokens;
  const std::vector<int> tokens = {0, 1, 2, 3, 4, 1, 2, 5, 3, 4, 6, 5, 3, 0};

  Tensor input() const {
    Tensor x(DataType::kF32, {1, kLength, kEmbed});
    for (std::int64_t i = 0; i < kLength; ++i) {
      float* const row = x.data<float>() + i * kEmbed;
      std::fill_n(row, kEmbed, 0.0f);
      row[kPosition + i] = 1;
      row[kToken + tokens[static_cast<std::size_t>(i)]] = 1;
      if (i > 0) row[kBefore + tokens[static_cast<std::size_t>(i - 1)]] = 1;
      row[kOne] = 1;
    }
    return x;
  }
  /// Rows of queries, keys and values, a head after the other.
  Tensor in_proj() const {
    Tensor weights(DataType::kF32, {3 * kEmbed, kEmbed});
    std::fill_n(weights.data<float>(), weights.count(), 0.0f);
    const auto at = [&](bool key, std::int64_t head, std::int64_t d, std::int64_t from) -> float& {
      return weights.data<float>()[((key ? kEmbed : 0) + head * kWidth + d) * kEmbed + from];
    };
    constexpr float kSharp = 40;
    for (std::int64_t i = 0; i < kLength; ++i) {
      at(false, 0, i, kPosition + i) = kSharp;
      if (i + 1 < kLength) at(true, 0, i + 1, kPosition + i) = 1;  // head 0: the key before
    }
    for (std::int64_t t = 0; t < kTokens; ++t) {
      at(false, 1, t, kToken + t) = kSharp;
      at(true, 1, t, kBefore + t) = 1;  // head 1: the key whose token before is the query's token
    }
    at(false, 2, 0, kOne) = kSharp;
    at(true, 2, 0, kPosition) = 1;  // head 2: the first key, whatever the query
    testing::Random random(3);
    for (std::int64_t d = 0; d < kWidth; ++d) {
      for (std::int64_t from = 0; from < kOne; ++from) {
        at(false, 3, d, from) = random.normal();
        at(true, 3, d, from) = random.normal();
      }
    }
    return weights;
  }
  std::string names() const {
    std::vector<std::string> texts;
    for (const int token : tokens) texts.push_back("t" + std::to_string(token));
    return lines(texts);
  }
};

TEST(Heads, PlantedRolesAreNamedAndNoOthers) {
  const CommandFolder folder;
  const Planted planted;
  const Tensor x = planted.input(), in_proj = planted.in_proj();
  const Tensor out_proj = varied({Planted::kEmbed, Planted::kEmbed}, 1);
  save(folder, "x", {{"query", &x}});
  save(folder, "w", {{"in_proj_weight", &in_proj}, {"out_proj.weight", &out_proj}});
  folder.write("tokens", planted.names());
  const json report = heads_of(folder, "--weights w --heads 4 --input x --tokens tokens --causal");
  const json& heads = report["layers"][0]["heads"];
  ASSERT_EQ(heads.size(), 4u);
  EXPECT_EQ(heads[0]["badges"], json::array({"previous"}));
  EXPECT_EQ(heads[1]["badges"], json::array({"induction"}));
  EXPECT_EQ(heads[2]["badges"], json::array({"first"}));
  EXPECT_EQ(heads[3]["badges"], json::array());
  EXPECT_GT(heads[0]["roles"]["previous"]["score"].get<double>(), 0.99);
  EXPECT_EQ(heads[0]["roles"]["previous"]["rows"], 13);
  EXPECT_LT(heads[0]["entropy"].get<double>(), 0.1);
  // Seven queries have an earlier copy with a key after it that is not the query itself.
  EXPECT_EQ(heads[1]["roles"]["induction"]["rows"], 7);
  // Seen both ways, what follows a copy of the token is first of all what follows the query itself.
  const json both = heads_of(folder, "--weights w --heads 4 --input x --tokens tokens")["layers"][0]["heads"];
  EXPECT_EQ(both[0]["badges"], json::array({"previous"}));
  EXPECT_EQ(both[1]["badges"][0], "next");
  EXPECT_EQ(both[2]["badges"], json::array({"first"}));
  EXPECT_EQ(both[3]["badges"], json::array());
  const CommandResult table = folder.run("heads --weights w --heads 4 --input x --tokens tokens --causal");
  EXPECT_NE(table.out.find("  previous\n"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("self attention, 4 heads, 14 queries × 14 keys"), std::string::npos) << table.out;
}

/// Queries and keys of random heads: random projections of random embeddings of random tokens, positions and a mean
/// that all rows share; scores have a standard deviation of 1, 2 or 4.
void fill_random_heads(std::int64_t heads, std::int64_t length, std::int64_t width, testing::Random* random,
                       Tensor* query, Tensor* key, std::vector<int>* tokens) {
  constexpr std::int64_t kEmbed = 48;
  constexpr int kVocabulary = 24;
  const auto gaussian = [&](std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = random->normal();
    return values;
  };
  const std::vector<float> table = gaussian(kVocabulary * kEmbed), mean = gaussian(kEmbed);
  std::vector<float> x = gaussian(length * kEmbed);  // positions
  for (std::int64_t i = 0; i < length; ++i) {
    tokens->push_back(static_cast<int>(random->below(kVocabulary)));
    for (std::int64_t e = 0; e < kEmbed; ++e) {
      x[static_cast<std::size_t>(i * kEmbed + e)] +=
          table[static_cast<std::size_t>(tokens->back() * kEmbed + e)] + mean[static_cast<std::size_t>(e)];
    }
  }
  const auto project = [&](float* to) {
    const std::vector<float> w = gaussian(kEmbed * width);
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t d = 0; d < width; ++d) {
        float sum = 0;
        for (std::int64_t e = 0; e < kEmbed; ++e) {
          sum += x[static_cast<std::size_t>(i * kEmbed + e)] * w[static_cast<std::size_t>(e * width + d)];
        }
        to[i * width + d] = sum;
      }
    }
  };
  for (std::int64_t h = 0; h < heads; ++h) {
    float* const q = query->data<float>() + h * length * width;
    float* const k = key->data<float>() + h * length * width;
    project(q);
    project(k);
    double squares = 0, sum = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t j = 0; j < length; ++j) {
        const double s = std::inner_product(q + i * width, q + (i + 1) * width, k + j * width, 0.0);
        sum += s;
        squares += s * s;
      }
    }
    const double pairs = static_cast<double>(length * length);
    const double deviation = std::sqrt(squares / pairs - sum / pairs * (sum / pairs));
    const double wanted = std::sqrt(static_cast<double>(width)) * static_cast<double>(1 << h % 3);
    for (std::int64_t n = 0; n < length * width; ++n) q[n] *= static_cast<float>(wanted / deviation);
  }
}

/// The figures that stand beside the roles.
TEST(Heads, RandomHeadsHaveNoBadges) {
  constexpr std::int64_t kLength = 48, kWidth = 16, kHeadsOfARun = 100;
  const CommandFolder folder;
  testing::Random random(11);
  std::map<std::string, int> counted;
  json roles;
  for (int run = 0; run < 10; ++run) {
    Tensor query(DataType::kF32, {1, kHeadsOfARun, kLength, kWidth}), key(DataType::kF32, query.dims());
    std::vector<int> tokens;
    fill_random_heads(kHeadsOfARun, kLength, kWidth, &random, &query, &key, &tokens);
    std::vector<std::string> names;
    for (const int token : tokens) names.push_back(std::to_string(token));
    names[kLength / 2] = "separator";
    folder.write("tokens", lines(names));
    save(folder, "x", {{"query", &query}, {"key", &key}, {"value", &key}});
    const std::string arguments = "--input x --tokens tokens --separator separator";
    const json causal = heads_of(folder, arguments + " --causal"), both = heads_of(folder, arguments);
    roles = both["roles"];
    for (std::size_t h = 0; h < kHeadsOfARun; ++h) {
      for (const auto& [name, role] : both["layers"][0]["heads"][h]["roles"].items()) {
        EXPECT_GE(role["rows"].get<int>(), 4) << name << ": a role that no row can have proves nothing";
        const bool badge = role["badge"] || causal["layers"][0]["heads"][h]["roles"][name]["badge"];
        counted[name] += badge ? 1 : 0;
      }
    }
  }
  for (const json& role : roles) {
    const std::string name = role["key"];
    EXPECT_EQ(role["random_heads"], 1000);
    EXPECT_GE(role["random_badges"], counted[name]) << name;
  }
}

/// Means over the rows of a [S, S] of probabilities, by the definitions.
struct Means {
  Means(const float* p, std::int64_t length, const std::vector<std::string>& tokens) {
    const auto n = static_cast<double>(length);
    for (std::int64_t i = 0; i < length; ++i) {
      double row = 0, induced = 0;
      bool has_copy = false;
      for (std::int64_t j = 0; j < length; ++j) {
        const auto x = static_cast<double>(p[i * length + j]);
        if (x > 0) row -= x * std::log(x);
        distance += x * static_cast<double>(std::abs(i - j)) / n;
        if (j > 0 && j < i && tokens[static_cast<std::size_t>(j - 1)] == tokens[static_cast<std::size_t>(i)]) {
          induced += x;
          has_copy = true;
        }
        if (tokens[static_cast<std::size_t>(j)] == "[SEP]" && tokens[static_cast<std::size_t>(i)] != "[SEP]") {
          separator += x / (n - 1);
        }
      }
      entropy += row / n;
      share += row / std::log(n) / n;
      same += static_cast<double>(p[i * length + i]) / n;
      if (i > 0) first += static_cast<double>(p[i * length]) / (n - 1);
      if (i > 0) previous += static_cast<double>(p[i * length + i - 1]) / (n - 1);
      if (i + 1 < length) next += static_cast<double>(p[i * length + i + 1]) / (n - 1);
      induction += induced;
      copies += has_copy ? 1 : 0;
    }
    induction /= copies;
  }
  double entropy = 0, share = 0, distance = 0, first = 0, same = 0, previous = 0, next = 0, separator = 0;
  double induction = 0, copies = 0;
};

TEST(Heads, MinilmAgreesWithTorchsProbabilities) {
  const std::string fixture = std::string(HEADWAY_SOURCE_DIR) + "/tests/fixtures/minilm_layer0/";
  const SafetensorsFile expected = SafetensorsFile::open(fixture + "expected.safetensors");
  const ConstTensorView weights = expected.tensor("weights");
  const json sentences = json::parse(std::ifstream(fixture + "tokens.json"))["tokens"];
  constexpr std::int64_t kLength = 49;
  const CommandFolder folder;
  // The longest sentence has no padding.
  folder.write("tokens.json", sentences[2].dump());
  const json report = heads_of(folder, "--weights " + fixture + "weights.safetensors --input " + fixture +
                                           "input.safetensors --heads 12 --batch 2 --tokens tokens.json "
                                           "--separator '[SEP]'");
  const json& layer = report["layers"][0];
  ASSERT_EQ(layer["heads"].size(), 12u);
  for (std::int64_t h = 0; h < 12; ++h) {
    const json& head = layer["heads"][static_cast<std::size_t>(h)];
    const Means means(weights.as<float>() + (2 * 12 + h) * kLength * kLength, kLength,
                      sentences[2].get<std::vector<std::string>>());
    const auto near = [&](const json& got, double exact) {
      EXPECT_NEAR(got.get<double>(), exact, 2e-6) << "head " << h;
    };
    const auto score = [&](const char* role) { return head["roles"][role]["score"]; };
    EXPECT_NEAR(head["entropy"].get<double>(), means.entropy, 1e-5);
    EXPECT_NEAR(head["distance"].get<double>(), means.distance, 1e-4);
    near(head["entropy_share"], means.share);
    near(score("first"), means.first);
    near(score("same"), means.same);
    near(score("previous"), means.previous);
    near(score("next"), means.next);
    near(score("separator"), means.separator);
    near(score("induction"), means.induction);
    EXPECT_EQ(head["roles"]["induction"]["rows"], means.copies);
    EXPECT_EQ(head["badges"], h == 2 ? json::array({"previous"}) : json::array()) << "head " << h;
  }
}

/// Padded keys have no weight and padded rows are rows as others are.
TEST(Heads, MasksAndModels) {
  const CommandFolder folder;
  folder.write("model.onnx", onnx_bytes::attention_model());
  const Tensor q = varied({1, 2, 6, 4}, 1), k = varied({1, 2, 6, 4}, 2), v = varied({1, 2, 6, 4}, 3);
  save(folder, "x", {{"q", &q}, {"k", &k}, {"v", &v}});
  save(folder, "layer", {{"query", &q}, {"key", &k}, {"value", &v}});
  const json model = heads_of(folder, "model.onnx --inputs x");
  const json layer = heads_of(folder, "--input layer");
  EXPECT_EQ(model["layers"][0]["heads"], layer["layers"][0]["heads"]);
  EXPECT_EQ(model["layers"].size(), 1u);
  const Tensor visible = bools({6}, {1, 1, 1, 0, 1, 0});
  save(folder, "masked", {{"query", &q}, {"key", &k}, {"value", &v}, {"attn_mask", &visible}});
  const json masked = heads_of(folder, "--input masked");
  const json& same = masked["layers"][0]["heads"][0]["roles"]["same"];
  EXPECT_EQ(same["rows"], 4);
  EXPECT_NEAR(same["uniform"].get<double>(), 0.25, 1e-12);
  EXPECT_TRUE(masked["layers"][0]["heads"][0]["roles"]["induction"]["score"].is_null());
}

TEST(Heads, RefusesWhatDoesNotFit) {
  const CommandFolder folder;
  const Tensor q = varied({1, 2, 6, 4}, 1);
  save(folder, "x", {{"query", &q}});
  folder.write("five", "a\nb\nc\nd\ne\n");
  folder.write("none", "");
  folder.write("bad.json", "[1]");
  folder.write("add.onnx", onnx_bytes::add_model());
  expect_refused(folder, "heads", "neither a model nor --input");
  expect_refused(folder, "heads --input x --tokens five",
                 "five has 5 tokens, as many as no axis: attention is 6 queries");
  expect_refused(folder, "heads --input x --tokens none", "none has no tokens");
  expect_refused(folder, "heads --input x --tokens bad.json", "no JSON array of strings");
  expect_refused(folder, "heads --input x --batch 1", "--batch is 1, expected 0 to 0");
  expect_refused(folder, "heads --input x --inputs y", "--inputs and --shape are for a model");
  expect_refused(folder, "heads add.onnx --input x", "--weights and --input are for a layer");
  expect_refused(folder, "heads add.onnx", "no attention that can be seen");
  expect_refused(folder, "heads --input x --json x", "is an input of this command");
}

}  // namespace
}  // namespace headway
