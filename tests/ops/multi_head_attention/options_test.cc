// Every option of the layer, alone and in random company, on every implementation against the double reference.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/ops/multi_head_attention/layer_case.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

double worst_seen[2] = {0, 0};  // f32, bf16

class ReportWorst : public ::testing::Environment {
 public:
  void TearDown() override {
    std::cout << "worst error of MultiHeadAttention: " << worst_seen[0] << " of the bound, in bf16 " << worst_seen[1]
              << "\n";
  }
};
const auto* const kReport = ::testing::AddGlobalTestEnvironment(new ReportWorst);

void expect_matches_in(DataType type, LayerShape shape, const Threads& threads) {
  shape.spec.type = type;
  LayerCase layer(shape);
  for (const std::string& implementation : attention_implementations()) {
    if (!refusal({implementation, ""}, layer.core_spec()).empty()) continue;
    const MultiHeadAttention mha(layer.spec(), layer.weights(), {.implementation = implementation});
    const AlignedBuffer workspace(mha.workspace_bytes(threads.workers()));
    const MultiHeadAttentionArgs args = layer.args();
    mha.run(args, workspace.data(), threads);
    const double ratio = layer.worst_ratio(args);
    EXPECT_LE(ratio, 1) << implementation << ": " << describe(shape);
    double& worst = worst_seen[type == DataType::kBF16 ? 1 : 0];
    worst = std::max(worst, ratio);
  }
}

/// In both types.
void expect_matches(const LayerShape& shape, const Threads& threads = Threads::openmp(2)) {
  expect_matches_in(DataType::kF32, shape, threads);
  expect_matches_in(DataType::kBF16, shape, threads);
}

LayerShape plain_shape() {
  LayerShape shape;
  shape.spec.batch = 2;
  shape.spec.query_len = 37;
  shape.spec.key_len = 37;
  shape.spec.embed_dim = 48;
  shape.spec.num_heads = 4;
  return shape;
}

TEST(LayerOptions, SelfAttention) {
  LayerShape shape = plain_shape();
  for (const bool self : {false, true}) {
    for (const bool biases : {false, true}) {
      shape.spec.self_attention = self;
      shape.biases = biases;
      expect_matches(shape);
    }
  }
}

/// What bf16 products want, and a few rows, which they do not.
TEST(LayerOptions, WidthsOfWholeTiles) {
  for (const std::int64_t width : {64, 128, 192}) {
    for (const std::int64_t rows : {1, 9, 70}) {
      LayerShape shape = plain_shape();
      shape.spec.embed_dim = width;
      shape.spec.num_heads = width / 32;
      shape.spec.key_len = shape.spec.query_len = rows;
      shape.spec.self_attention = rows == 70;
      expect_matches(shape);
      shape.bias_kv = true;
      expect_matches(shape);
    }
  }
}

TEST(LayerOptions, HeadCounts) {
  for (const std::int64_t heads : {1, 2, 3, 6, 8, 12, 16, 48}) {
    LayerShape shape = plain_shape();
    shape.spec.num_heads = heads;
    shape.spec.self_attention = true;
    expect_matches(shape);
  }
}

TEST(LayerOptions, CrossAttentionWithOtherWidths) {
  LayerShape shape = plain_shape();
  shape.spec.key_len = 19;
  shape.spec.kdim = 7;
  shape.spec.vdim = 130;
  expect_matches(shape);
}

TEST(LayerOptions, GroupedHeadsAndValueWidth) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    LayerShape shape = plain_shape();
    shape.spec.num_kv_heads = kv_heads;
    shape.spec.head_dim = 20;
    shape.spec.value_head_dim = 9;
    for (const bool self : {false, true}) {
      shape.spec.self_attention = self;
      expect_matches(shape);
    }
  }
}

TEST(LayerOptions, AppendedKeys) {
  for (const bool bias_kv : {false, true}) {
    for (const bool zero : {false, true}) {
      for (const bool self : {false, true}) {
        LayerShape shape = plain_shape();
        shape.bias_kv = bias_kv;
        shape.spec.add_zero_attention = zero;
        shape.spec.self_attention = self;
        shape.spec.causal = Causal::kTopLeft;
        shape.spec.key_mask = MaskKind::kBool;
        shape.spec.scores_output = ScoresOutput::kProbabilities;
        shape.hidden = 0.6;
        expect_matches(shape);
      }
    }
  }
}

TEST(LayerOptions, MasksOfEveryRankAndKind) {
  for (const MaskKind mask : {MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive}) {
    for (const MaskKind key_mask : {MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive}) {
      for (const int rank : {2, 3, 4}) {
        LayerShape shape = plain_shape();
        shape.spec.mask = mask;
        shape.spec.key_mask = key_mask;
        shape.spec.mask_polarity = rank == 2 ? MaskPolarity::kTrueHides : MaskPolarity::kTrueAttends;
        shape.mask_rank = rank;
        expect_matches(shape);
      }
    }
  }
}

TEST(LayerOptions, Layouts) {
  for (const bool sequence_first : {false, true}) {
    for (const bool padded : {false, true}) {
      for (const bool appended : {false, true}) {
        LayerShape shape = plain_shape();
        shape.spec.key_len = 21;
        shape.sequence_first = sequence_first;
        shape.padded_rows = padded;
        shape.spec.add_zero_attention = appended;
        expect_matches(shape);
      }
    }
  }
}

TEST(LayerOptions, EveryScoresOutput) {
  for (const ScoresOutput output : {ScoresOutput::kScaled, ScoresOutput::kSoftcapped, ScoresOutput::kBiased,
                                    ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities}) {
    for (const EmptyRow empty : {EmptyRow::kZero, EmptyRow::kNan}) {
      LayerShape shape = plain_shape();
      shape.spec.scores_output = output;
      shape.spec.softcap = 3;
      shape.spec.mask = MaskKind::kBool;
      shape.spec.causal = Causal::kTopLeft;
      shape.spec.empty_row = empty;
      shape.hidden = 0.8;
      expect_matches(shape);
    }
  }
}

TEST(LayerOptions, LengthsAndOffsets) {
  LayerShape shape = plain_shape();
  shape.spec.key_lengths = true;
  shape.lengths = {5, 37};
  expect_matches(shape);
  shape.spec.causal = Causal::kOffset;
  shape.offsets = {-32, 0};
  expect_matches(shape);
}

TEST(LayerOptions, EmptyAndTinySizes) {
  for (const std::int64_t batch : {0, 1}) {
    for (const std::int64_t length : {0, 1, 2}) {
      LayerShape shape = plain_shape();
      shape.spec.batch = batch;
      shape.spec.query_len = length;
      shape.spec.key_len = length;
      expect_matches(shape);
    }
  }
}

TEST(LayerOptions, QueriesWithoutKeys) {
  for (const bool zero_attention : {false, true}) {
    LayerShape shape = plain_shape();
    shape.spec.query_len = 5;
    shape.spec.key_len = 0;
    shape.spec.add_zero_attention = zero_attention;
    expect_matches(shape);
  }
}

LayerShape random_shape(std::uint64_t seed) {
  Random random(seed);
  LayerShape shape;
  shape.seed = seed;
  MultiHeadAttentionSpec& s = shape.spec;
  s.batch = random.between(1, 3);
  s.query_len = random.pick<std::int64_t>({1, 2, 7, 16, 33, 64, 65, 100});
  s.key_len = random.chance(0.4) ? s.query_len : random.pick<std::int64_t>({1, 3, 15, 64, 70, 129});
  s.num_heads = random.pick<std::int64_t>({1, 2, 3, 4, 6});
  s.num_kv_heads = s.num_heads % 2 == 0 && random.chance(0.4) ? s.num_heads / 2 : s.num_heads;
  s.embed_dim = s.num_heads * random.pick<std::int64_t>({1, 3, 8, 16, 17, 32});
  if (random.chance(0.3)) s.head_dim = random.between(1, 40);
  if (random.chance(0.3)) s.value_head_dim = random.between(1, 40);
  s.self_attention = s.key_len == s.query_len && random.chance(0.6);
  if (!s.self_attention && random.chance(0.3)) s.kdim = random.between(1, 70);
  if (!s.self_attention && random.chance(0.3)) s.vdim = random.between(1, 70);
  s.add_zero_attention = random.chance(0.25);
  shape.bias_kv = random.chance(0.25);
  shape.biases = random.chance(0.7);
  shape.sequence_first = random.chance(0.3);
  shape.padded_rows = random.chance(0.3);
  shape.mask_rank = static_cast<int>(random.between(2, 4));
  shape.hidden = random.pick({0.1, 0.3, 0.9});
  AttentionRules& a = s;
  const auto kinds = {MaskKind::kNone, MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive};
  a.mask = random.pick<MaskKind>(kinds);
  a.key_mask = random.pick<MaskKind>(kinds);
  a.mask_polarity = random.chance(0.5) ? MaskPolarity::kTrueHides : MaskPolarity::kTrueAttends;
  a.causal = random.pick({Causal::kNone, Causal::kNone, Causal::kTopLeft, Causal::kBottomRight});
  if (random.chance(0.2)) a.window = {random.between(-1, 9), random.between(-1, 9)};
  a.empty_row = random.chance(0.5) ? EmptyRow::kZero : EmptyRow::kNan;
  a.scores_output = random.pick({ScoresOutput::kNone, ScoresOutput::kNone, ScoresOutput::kBiased,
                                 ScoresOutput::kProbabilities, ScoresOutput::kMeanProbabilities});
  if (random.chance(0.2)) a.softcap = 2.5f;
  if (random.chance(0.2)) a.scale = 0.3f;
  if (random.chance(0.2)) {
    a.key_lengths = true;
    for (std::int64_t b = 0; b < s.batch; ++b) shape.lengths.push_back(random.between(0, *s.key_len));
  }
  return shape;
}

TEST(LayerOptions, RandomCompany) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) expect_matches(random_shape(seed));
}

}  // namespace
}  // namespace headway::testing
