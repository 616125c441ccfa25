// Decoders against transformers: every family of tests/fixtures/decoders through prefill, decoding, ragged batches and
// paged caches of any block. tests/fixtures/make_decoders.py says what is expected.
#include "tools/engine/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "headway/safetensors.h"
#include "headway_test_paths.h"
#include "tests/runtime/error_of.h"
#include "tools/engine/engine.h"

namespace headway::engine {
namespace {

using testing::error_of;
using testing::expect_contains;

constexpr std::size_t kPrompts = 4;

std::string folder(const std::string& family) {
  return std::string(HEADWAY_SOURCE_DIR) + "/tests/fixtures/decoders/" + family;
}

/// What transformers computed for the prompts.
struct Expected {
  explicit Expected(const std::string& family) : file(SafetensorsFile::open(folder(family) + "/expected.safetensors")) {
    for (std::size_t i = 0; i < kPrompts; ++i) {
      prompts.push_back(ids("prompt." + std::to_string(i)));
      tokens.push_back(ids("tokens." + std::to_string(i)));
      all.push_back(prompts.back());
      all.back().insert(all.back().end(), tokens.back().begin(), tokens.back().end());
    }
  }
  std::vector<std::int32_t> ids(const std::string& name) const {
    const ConstTensorView view = file.tensor(name);
    return {view.as<std::int64_t>(), view.as<std::int64_t>() + view.count()};
  }
  ConstTensorView logits(std::size_t i) const { return file.tensor("logits." + std::to_string(i)); }

  SafetensorsFile file;
  std::vector<std::vector<std::int32_t>> prompts, tokens, all;
};

/// Runs parts of the sequences as one batch over blocks that it deals out, and keeps the logits of every token.
class Player {
 public:
  Player(const std::string& family, const DecoderLimits& limits)
      : expected_(family), decoder_(folder(family), limits, Threads::pool(2)), pool_(limits.blocks, limits.block_size) {
    sequences_.resize(kPrompts);
    logits_.resize(kPrompts);
    for (std::size_t i = 0; i < kPrompts; ++i) sequences_[i].tokens = expected_.all[i];
  }

  struct Part {
    std::size_t sequence;
    std::int64_t tokens;
  };
  void run(const std::vector<Part>& parts) {
    Batch batch;
    batch.query_starts = {0};
    std::vector<std::int64_t> rows;
    for (const Part& part : parts) {
      Sequence& s = sequences_[part.sequence];
      ASSERT_TRUE(pool_.grow(s.cached + part.tokens, &s.blocks));
      batch.tokens.insert(batch.tokens.end(), s.tokens.begin() + s.cached, s.tokens.begin() + s.cached + part.tokens);
      batch.query_starts.push_back(static_cast<std::int32_t>(batch.tokens.size()));
      s.cached += part.tokens;
      batch.lengths.push_back(static_cast<std::int32_t>(s.cached));
      batch.table_width = std::max(batch.table_width, static_cast<std::int64_t>(s.blocks.size()));
    }
    for (const Part& part : parts) {
      std::vector<std::int32_t> blocks = sequences_[part.sequence].blocks;
      blocks.resize(static_cast<std::size_t>(batch.table_width), 0);
      batch.block_table.insert(batch.block_table.end(), blocks.begin(), blocks.end());
    }
    for (std::size_t t = 0; t < batch.tokens.size(); ++t) rows.push_back(static_cast<std::int64_t>(t));
    std::vector<float> got(rows.size() * vocab());
    decoder_.run(batch, rows, got.data());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto& to = logits_[parts[p].sequence];
      to.insert(to.end(), got.begin() + batch.query_starts[p] * static_cast<std::ptrdiff_t>(vocab()),
                got.begin() + batch.query_starts[p + 1] * static_cast<std::ptrdiff_t>(vocab()));
    }
  }
  std::size_t vocab() const { return static_cast<std::size_t>(decoder_.config().vocab); }
  const std::vector<float>& logits(std::size_t i) const { return logits_[i]; }
  std::int64_t left(std::size_t i) const { return sequences_[i].length() - 1 - sequences_[i].cached; }

  /// The largest difference from transformers in shares of the row's largest logit; all rows of all sequences are
  /// there.
  double worst() const {
    double worst = 0;
    for (std::size_t i = 0; i < kPrompts; ++i) {
      const ConstTensorView want = expected_.logits(i);
      EXPECT_EQ(static_cast<std::int64_t>(logits_[i].size()), want.count());
      for (std::int64_t r = 0; r < want.dims[0]; ++r) {
        const float* const a = logits_[i].data() + r * want.dims[1];
        const float* const b = want.as<float>() + r * want.dims[1];
        double largest = 0, difference = 0;
        for (std::int64_t v = 0; v < want.dims[1]; ++v) {
          largest = std::max(largest, std::abs(static_cast<double>(b[v])));
          const double d = std::abs(static_cast<double>(a[v]) - b[v]);
          difference = std::isnan(d) ? INFINITY : std::max(difference, d);
        }
        worst = std::max(worst, difference / largest);
      }
    }
    return worst;
  }

 private:
  Expected expected_;
  Decoder decoder_;
  BlockPool pool_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<float>> logits_;
};

DecoderLimits limits_of(std::int64_t block_size) {
  DecoderLimits limits;
  limits.max_tokens = 256;
  limits.max_batch = 8;
  limits.block_size = block_size;
  limits.blocks = 512 / block_size;
  return limits;
}

/// Each sequence whole.
void play_alone(Player* player) {
  for (std::size_t i = 0; i < kPrompts; ++i) player->run({{i, player->left(i)}});
}
/// Prompts in chunks beside decodes of the others, then all decode together.
void play_mixed(Player* player) {
  player->run({{2, 7}, {0, 1}});
  player->run({{0, 1}, {3, 20}, {2, 12}});
  player->run({{1, 5}, {2, 1}, {3, 17}, {0, 1}});
  while (player->left(0) > 0 || player->left(1) > 0 || player->left(2) > 0 || player->left(3) > 0) {
    std::vector<Player::Part> parts;
    for (const std::size_t i : {3, 0, 2, 1}) {
      if (player->left(i) > 0) parts.push_back({i, 1});
    }
    player->run(parts);
  }
}

class Decoders : public ::testing::TestWithParam<const char*> {};

TEST_P(Decoders, LogitsAreThoseOfTransformers) {
  for (const std::int64_t block_size : {1, 16}) {
    Player alone(GetParam(), limits_of(block_size)), mixed(GetParam(), limits_of(block_size));
    play_alone(&alone);
    play_mixed(&mixed);
    EXPECT_LT(alone.worst(), 1e-4);
    EXPECT_LT(mixed.worst(), 1e-4);
    RecordProperty("worst", std::to_string(std::max(alone.worst(), mixed.worst())));
  }
}

TEST_P(Decoders, BatchInvariantLogitsHaveTheSameBits) {
  DecoderLimits limits = limits_of(16);
  limits.batch_invariant = true;
  Player alone(GetParam(), limits);
  limits.block_size = 4;
  limits.blocks = 128;
  Player mixed(GetParam(), limits);
  play_alone(&alone);
  play_mixed(&mixed);
  for (std::size_t i = 0; i < kPrompts; ++i) EXPECT_EQ(alone.logits(i), mixed.logits(i)) << "prompt " << i;
}

TEST_P(Decoders, TheEngineGeneratesTheSameTokensHoweverCrowded) {
  const Expected expected(GetParam());
  EngineOptions roomy, crowded;
  crowded.decoder.blocks = 6;  // little more than the longest request
  crowded.decoder.max_tokens = 8;
  for (const EngineOptions& options : {roomy, crowded}) {
    Engine engine(folder(GetParam()), options, Threads::serial());
    for (std::size_t i = 0; i < kPrompts; ++i) {
      Request request;
      request.id = std::to_string(i);
      request.prompt = expected.prompts[i];
      request.max_new_tokens = static_cast<std::int64_t>(expected.tokens[i].size());
      engine.submit(request);
    }
    std::size_t finished = 0;
    while (!engine.idle()) {
      for (const Sequence& done : engine.step()) {
        ++finished;
        EXPECT_EQ(done.tokens, expected.all[std::stoul(done.request.id)]) << "prompt " << done.request.id;
      }
    }
    EXPECT_EQ(finished, kPrompts);
    expect_contains(engine.summary(), std::to_string(options.decoder.blocks) + " of " +
                                          std::to_string(options.decoder.blocks) + " blocks free");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Decoders, ::testing::Values("gpt2", "llama", "qwen3", "gemma3", "mistral"),
                         [](const auto& family) { return std::string(family.param); });

TEST(Decoder, NarrowCachesStayClose) {
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    DecoderLimits limits = limits_of(16);
    limits.cache_type = type;
    Player player("llama", limits);
    play_mixed(&player);
    EXPECT_LT(player.worst(), type == DataType::kBF16 ? 0.1 : 0.02);
    EXPECT_GT(player.worst(), 1e-5);  // the type took effect
  }
}

TEST(Decoder, RefusesWhatIsNotACheckpoint) {
  expect_contains(error_of([] { Decoder(folder("nobody"), {}, Threads::serial()); }, ErrorCode::kIo), "config.json");
  Engine engine(folder("gpt2"), {}, Threads::serial());
  Request request;
  request.prompt = {1, 96};
  expect_contains(error_of([&] { engine.submit(request); }), "token 96, expected below vocab_size = 96");
  request.prompt = {1};
  request.max_new_tokens = 128;
  expect_contains(error_of([&] { engine.submit(request); }), "1 prompt tokens and 128 new ones, expected at most 128");
}

}  // namespace
}  // namespace headway::engine
