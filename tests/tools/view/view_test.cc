// headway view: the numbers of its page against torch's and against the reference, the size of it, and the page in a
// browser.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "headway/attention.h"
#include "headway_test_paths.h"
#include "ops/attention/spec.h"
#include "ops/reference/reference_attention.h"
#include "tests/tools/command/command.h"
#include "tests/tools/command/onnx_bytes.h"

namespace headway {
namespace {

using nlohmann::json;

/// What is between the tags of the element with this id.
std::string element(const std::string& page, const std::string& id) {
  const std::size_t tag = page.find("id=\"" + id + "\">");
  if (tag == std::string::npos) return {};
  const std::size_t begin = page.find('>', tag) + 1;
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(word >> bits & 255));
  }
  return bytes;
}

/// One layer of a page, its probabilities computed as the page computes them.
class Layer {
 public:
  Layer(const std::string& page, std::size_t index)
      : json_(json::parse(element(page, "headway-data"))["layers"][index]),
        bytes_(from_base64(element(page, "layer-" + std::to_string(index)))),
        thumbnails_(from_base64(element(page, "thumbnails-" + std::to_string(index)))) {
    if (json_["biases"].is_null()) return;
    for (const json& number : json_["biases"]) {
      biases_.push_back(from_base64(element(page, "bias-" + std::to_string(number.get<int>()))));
    }
  }
  const json& info() const { return json_; }
  const std::string& thumbnails() const { return thumbnails_; }
  std::size_t keys() const { return json_["keys"]; }

  /// NaN where a mask hides.
  std::vector<double> row(std::size_t head, std::size_t query) const {
    std::vector<double> p(keys(), std::nan(""));
    double sum = 0;
    for (std::size_t j = 0; j < keys(); ++j) {
      const double bias = bias_of(head, query, j);
      if (std::isinf(bias)) continue;
      if (json_["encoding"] == "rows") {
        p[j] = at<float>("rows", (head * json_["queries"].get<std::size_t>() + query) * keys() + j);
        continue;
      }
      p[j] = std::exp(score(head, query, j) + bias);
      sum += p[j];
    }
    if (json_["encoding"] != "rows") {
      for (double& x : p) x /= sum;
      const double kept = at<float>("log_sum_exp", head * json_["queries"].get<std::size_t>() + query);
      EXPECT_NEAR(kept, std::log(sum), 1e-6 * (4 + std::abs(kept)));
    }
    return p;
  }

 private:
  template <class T>
  T at(const std::string& part, std::size_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + json_["parts"][part]["offset"].get<std::size_t>() + index * sizeof(T),
                sizeof(T));
    return value;
  }
  double bias_of(std::size_t head, std::size_t query, std::size_t key) const {
    if (key >= json_["keys_with_positions"].get<std::size_t>()) return 0;
    const auto j = static_cast<std::int32_t>(key);
    if (j < at<std::int32_t>("visible", 2 * query) || j >= at<std::int32_t>("visible", 2 * query + 1)) return -INFINITY;
    if (biases_.empty()) return 0;
    const std::string& bias = biases_[head];
    const std::size_t element_bytes = bias[0] == 1 ? 4 : 1, rows = (bias.size() - 1) / element_bytes / keys();
    const std::size_t index = (rows == 1 ? 0 : query) * keys() + key;
    if (bias[0] == 0) return bias[1 + index] != 0 ? -INFINITY : 0;
    float value;
    std::memcpy(&value, bias.data() + 1 + 4 * index, 4);
    return value;
  }
  double fixed(const std::string& part, std::size_t row, std::size_t d) const {
    const std::size_t width = json_["head_dim"];
    std::int32_t value = 0;
    std::memcpy(reinterpret_cast<char*>(&value) + 1,
                bytes_.data() + json_["parts"][part]["offset"].get<std::size_t>() + 3 * (row * width + d), 3);
    return std::ldexp(value / 256, at<std::int8_t>(part + "_exponents", row) - 23);
  }
  double score(std::size_t head, std::size_t query, std::size_t key) const {
    const std::size_t heads = json_["heads"].size(), kv_head = head * json_["kv_heads"].get<std::size_t>() / heads;
    double sum = 0;
    for (std::size_t d = 0; d < json_["head_dim"].get<std::size_t>(); ++d) {
      sum += fixed("query", head * json_["queries"].get<std::size_t>() + query, d) *
             fixed("key", kv_head * keys() + key, d);
    }
    const double softcap = json_["softcap"];
    return softcap > 0 ? softcap * std::tanh(sum / softcap) : sum;
  }

  json json_;
  std::string bytes_, thumbnails_;
  std::vector<std::string> biases_;
};

std::string view(const CommandFolder& folder, const std::string& arguments) {
  const CommandResult result = folder.run("view " + arguments + " --out page.html");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return folder.read("page.html");
}

/// Opens the page of the folder and uses it. `expected` as browser.py takes it.
void use_in_browser(const CommandFolder& folder, const json& expected) {
  folder.write("expected.json", expected.dump());
  const CommandResult result =
      folder.shell("command -v python3 >/dev/null || { echo no python3; exit 77; }; python3 " HEADWAY_SOURCE_DIR
                   "/tests/tools/view/browser.py page.html expected.json ${PICTURES:-}");
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
}

const std::string kMinilm = HEADWAY_SOURCE_DIR "/tests/fixtures/minilm_layer0/";

/// The sentence of this number, with padding, of the fixture.
std::string minilm_arguments(const CommandFolder& folder, std::size_t sentence) {
  json tokens = json::parse(std::ifstream(kMinilm + "tokens.json"))["tokens"][sentence];
  while (tokens.size() < 49) tokens.push_back("[PAD]");
  folder.write("tokens.json", tokens.dump());
  return "--weights " + kMinilm + "weights.safetensors --input " + kMinilm + "input.safetensors --heads 12 --batch " +
         std::to_string(sentence) + " --tokens tokens.json --separator '[SEP]'";
}

TEST(View, MinilmHoldsTorchsProbabilitiesAndTheRolesOfHeads) {
  const SafetensorsFile file = SafetensorsFile::open(kMinilm + "expected.safetensors");
  const float* const expected = file.tensor("weights").as<float>();
  const CommandFolder folder;
  constexpr std::size_t kSentence = 1, kLength = 49, kTokens = 9;
  const std::string arguments = minilm_arguments(folder, kSentence);
  const std::string page = view(folder, arguments);
  const Layer layer(page, 0);
  EXPECT_EQ(layer.info()["encoding"], "query_key");
  EXPECT_EQ(layer.info()["key_tokens"][1], "the");
  double worst = 0;
  for (std::size_t h = 0; h < 12; ++h) {
    for (std::size_t i = 0; i < kLength; ++i) {
      const float* const exact = expected + ((kSentence * 12 + h) * kLength + i) * kLength;
      const std::vector<double> row = layer.row(h, i);
      for (std::size_t j = 0; j < kLength; ++j) {
        const auto cell =
            static_cast<unsigned char>(layer.thumbnails()[(h * 48 + i * 48 / kLength) * 48 + j * 48 / kLength]);
        ASSERT_EQ(std::isnan(row[j]), j >= kTokens) << "the padding is hidden, and nothing else";
        if (j >= kTokens) continue;
        worst = std::max(worst, std::abs(row[j] - static_cast<double>(exact[j])));
        ASSERT_GE(cell / 254.0, static_cast<double>(exact[j]) - 1.0 / 255) << "head " << h << " " << i << " " << j;
      }
    }
  }
  EXPECT_LE(worst, 1e-6);
  ASSERT_EQ(folder.run("heads " + arguments + " --json heads.json").exit_code, 0);
  EXPECT_EQ(layer.info()["heads"], json::parse(folder.read("heads.json"))["layers"][0]["heads"]);
  // Nothing that would be asked for: no address but those of the notes' own words.
  for (const char* part : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

/// A short layer whose rows are kept, and longer ones by query and key: grouped heads, causality, softcap, a window and
/// a mask that adds, against double.
TEST(View, HoldsWhatTheReferenceComputes) {
  for (const std::int64_t length : {5, 40}) {
    const CommandFolder folder;
    const Tensor q = varied({1, 4, length, 8}, 1), k = varied({1, 2, length, 8}, 2), v = varied({1, 2, length, 8}, 3);
    Tensor mask = varied({4, length, length}, 4);
    mask.data<float>()[1] = -INFINITY;
    save(folder, "x", {{"query", &q}, {"key", &k}, {"value", &v}, {"attn_mask", &mask}});
    const Layer layer(view(folder, "--input x --causal --softcap 3 --window 11,0"), 0);
    EXPECT_EQ(layer.info()["encoding"], length == 5 ? "rows" : "query_key");
    AttentionSpec spec;
    spec.num_heads = 4, spec.num_kv_heads = 2, spec.query_len = spec.key_len = length, spec.head_dim = 8;
    spec.causal = Causal::kTopLeft, spec.softcap = 3, spec.window.left = 11, spec.window.right = 0;
    spec.mask = MaskKind::kAdditive, spec.scores_output = ScoresOutput::kProbabilities;
    std::vector<double> out(static_cast<std::size_t>(q.count())), exact(static_cast<std::size_t>(4 * length * length));
    AttentionArgs args;
    args.query = q.view(), args.key = k.view(), args.value = v.view(), args.mask = mask.view();
    args.out = view_of(out.data(), q.dims());
    args.scores = view_of(exact.data(), Dims{1, 4, length, length});
    reference_attention(complete_spec(spec), args);
    for (std::size_t h = 0; h < 4; ++h) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
        const std::vector<double> row = layer.row(h, i);
        for (std::size_t j = 0; j < row.size(); ++j) {
          const double expected = exact[(h * row.size() + i) * row.size() + j];
          ASSERT_NEAR(std::isnan(row[j]) ? 0 : row[j], expected, 1e-6) << length << ": " << h << " " << i << " " << j;
        }
      }
    }
  }
}

TEST(View, RefusesAndWritesNothing) {
  const CommandFolder folder;
  const Tensor q = varied({1, 2, 6, 4}, 1);
  save(folder, "x", {{"query", &q}});
  expect_refused(folder, "view --input x", "--out");
  expect_refused(folder, "view --out page.html", "neither a model nor --input");
  expect_refused(folder, "view --input x --batch 3 --out page.html", "--batch is 3");
  expect_refused(folder, "view --input x --out x", "is an input of this command");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"x"});
  // Names that would end an element or start one are text.
  folder.write("tokens", "</script>\n<!--\n<b>\n\"\n&\n\\\n");
  const std::string page = view(folder, "--input x --tokens tokens");
  EXPECT_EQ(Layer(page, 0).info()["key_tokens"][0], "</script>");
  EXPECT_EQ(page.find("<b>"), std::string::npos);
}

TEST(ViewInABrowser, ALayerWithPadding) {
  const SafetensorsFile file = SafetensorsFile::open(kMinilm + "expected.safetensors");
  const float* const weights = file.tensor("weights").as<float>();
  const CommandFolder folder;
  view(folder, minilm_arguments(folder, 1));
  json heads = json::array();
  for (std::size_t h = 0; h < 12; ++h) {
    json rows = json::array();
    for (std::size_t i = 0; i < 49; ++i) {
      const float* const row = weights + ((12 + h) * 49 + i) * 49;
      rows.push_back(std::vector<float>(row, row + 49));
    }
    heads.push_back(rows);
  }
  std::vector<int> hidden(49);
  std::fill(hidden.begin() + 9, hidden.end(), 1);
  use_in_browser(folder,
                 {{"layers", {{{"probabilities", heads}, {"hidden", std::vector<std::vector<int>>(49, hidden)}}}}});
}

TEST(ViewInABrowser, AModelOfTwoLayers) {
  const CommandFolder folder;
  folder.write("model.onnx", onnx_bytes::two_attentions_model());
  const Tensor q = varied({1, 2, 12, 4}, 1), k = varied({1, 2, 12, 4}, 2), v = varied({1, 2, 12, 4}, 3);
  save(folder, "x", {{"q", &q}, {"k", &k}, {"v", &v}});
  const std::string page = view(folder, "model.onnx --inputs x");
  json expected = {{"layers", json::array()}};
  for (const auto& [query, key] : {std::pair(&q, &k), std::pair(&k, &q)}) {
    save(folder, "layer", {{"query", query}, {"key", key}, {"value", &v}});
    ASSERT_EQ(folder.run("attend --input layer --per-head --out result").exit_code, 0);
    const std::vector<float> weights = load(folder, "result", "weights");
    json heads = json::array();
    for (std::size_t h = 0; h < 2; ++h) {
      json rows = json::array();
      for (std::size_t i = 0; i < 12; ++i) {
        const float* const row = weights.data() + (h * 12 + i) * 12;
        rows.push_back(std::vector<float>(row, row + 12));
      }
      heads.push_back(rows);
    }
    expected["layers"].push_back({{"probabilities", heads}, {"hidden", std::vector(12, std::vector<int>(12, 0))}});
  }
  use_in_browser(folder, expected);
}

}  // namespace
}  // namespace headway
