// Small inputs with exact answers that broke other implementations, each on every path, and the kind of fault behind
// each at other sizes and places. "Uniform probe": queries and keys are 0, so a row is the mean of the values it sees.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/paths.h"

namespace headway::testing {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kHidden = -std::numeric_limits<float>::infinity();

class KnownAnswers : public ::testing::TestWithParam<Path> {
 protected:
  /// A problem with queries and keys of 0 and values 1, 2, 3, … along the keys of every head.
  static std::unique_ptr<AttentionCase> probe(const CaseShape& shape) {
    auto problem = std::make_unique<AttentionCase>(shape);
    problem->query.fill(0);
    problem->key.fill(0);
    each(problem->value.view().dims,
         [&](auto b, auto h, auto j, auto d) { problem->value.at(b, h, j, d) = static_cast<float>(j + 1); });
    return problem;
  }

  /// Runs on the path of this test and compares the output, in row-major order, with the exact values. Columns beyond
  /// the width that a test asked for are there for the path alone.
  static void expect_out(AttentionCase& problem, const std::vector<double>& expected) {
    if (!refusal(GetParam(), problem.spec()).empty()) GTEST_SKIP() << refusal(GetParam(), problem.spec());
    run_path(GetParam(), problem);
    std::size_t index = 0;
    Dims asked = problem.out.view().dims;
    if (asked[3] == head_width(GetParam(), asked_width_)) asked[3] = asked_width_;
    ASSERT_EQ(static_cast<std::size_t>(element_count(asked)), expected.size());
    each(asked, [&](auto b, auto h, auto i, auto d) {
      EXPECT_NEAR(problem.out.at(b, h, i, d), expected[index], close() * (1 + std::abs(expected[index])))
          << "element " << index;
      ++index;
    });
  }

  /// In bf16 the output is rounded, and on some paths the weights.
  static double close() { return GetParam().type == DataType::kBF16 ? 1.05 / 256 : 2e-6; }

  static CaseShape sized(std::int64_t query_len, std::int64_t key_len, std::int64_t head_dim = 1) {
    CaseShape shape;
    shape.spec.type = GetParam().type;
    shape.spec.query_len = query_len;
    shape.spec.key_len = key_len;
    shape.spec.head_dim = head_width(GetParam(), head_dim);
    asked_width_ = head_dim;
    return shape;
  }

 private:
  static inline std::int64_t asked_width_ = 1;
};

TEST_P(KnownAnswers, EmptyRowIsZeroAndSingleKeyIsCopied) {
  CaseShape shape = sized(2, 3, 2);
  shape.spec.mask = MaskKind::kBool;
  const auto problem = probe(shape);
  for (std::int64_t j = 0; j < 3; ++j) problem->value.at(0, 0, j, 1) = static_cast<float>(10 * (j + 1));
  problem->mask_bits = {0, 0, 0, 0, 1, 0};
  expect_out(*problem, {0, 0, 2, 20});
}

TEST_P(KnownAnswers, EmptyRowsAnywhere) {
  for (const std::int64_t keys : {1, 7, 16, 17, 49, 130}) {
    for (const MaskKind kind : {MaskKind::kBool, MaskKind::kAdditive}) {
      CaseShape shape = sized(19, keys, 3);
      shape.spec.mask = kind;
      const auto problem = probe(shape);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < 19; ++i) {
        const std::int64_t seen = i % 3 == 0 ? -1 : (i * 5) % keys;
        for (std::int64_t j = 0; j < keys; ++j) {
          const auto at = static_cast<std::size_t>(i * keys + j);
          if (kind == MaskKind::kBool) problem->mask_bits[at] = j == seen;
          if (kind == MaskKind::kAdditive) problem->mask_values[at] = j == seen ? 0.0f : kHidden;
        }
        expected.insert(expected.end(), 3, static_cast<double>(seen + 1));
      }
      expect_out(*problem, expected);
    }
  }
}

TEST_P(KnownAnswers, LowestFloatIsNotMasked) {
  CaseShape shape = sized(2, 3, 2);
  shape.spec.mask = MaskKind::kAdditive;
  const auto problem = probe(shape);
  for (std::int64_t j = 0; j < 3; ++j) problem->value.at(0, 0, j, 1) = static_cast<float>(10 * (j + 1));
  problem->mask_values = {kLowest, kLowest, kLowest, kHidden, 0, kHidden};
  expect_out(*problem, {2, 20, 2, 20});
}

TEST_P(KnownAnswers, FiniteMinusInfinityOnWholeRows) {
  for (const float value : {-1e4f, -1e9f, -1e30f, kLowest}) {
    for (const std::int64_t keys : {5, 33, 127}) {
      CaseShape shape = sized(9, keys);
      shape.spec.mask = MaskKind::kAdditive;
      shape.spec.key_mask = MaskKind::kAdditive;  // both at once must not add up to −inf
      const auto problem = probe(shape);
      for (float& m : problem->mask_values) m = value;
      for (float& m : problem->key_mask_values) m = value;
      expect_out(*problem, std::vector<double>(9, static_cast<double>(keys + 1) / 2));
    }
  }
}

TEST_P(KnownAnswers, FirstKeyBlocksOfARowAreEmpty) {
  for (const bool by_mask : {true, false}) {
    CaseShape shape = sized(640, 640, 4);
    if (by_mask) {
      shape.spec.mask = MaskKind::kBool;
    } else {
      shape.spec.causal = Causal::kTopLeft;
      shape.spec.window.left = 9;
    }
    AttentionCase problem(shape);
    problem.query.fill(1);
    problem.key.fill(1);
    problem.value.fill(1);
    for (std::int64_t i = 0; by_mask && i < 640; ++i) {
      for (std::int64_t j = 0; j < 640; ++j)
        problem.mask_bits[static_cast<std::size_t>(i * 640 + j)] = j <= i && j > i - 10;
    }
    expect_out(problem, std::vector<double>(640 * 4, 1.0));
  }
}

TEST_P(KnownAnswers, CausalIsAnchoredAtTheTopLeft) {
  CaseShape shape = sized(2, 4);
  shape.spec.causal = Causal::kTopLeft;
  expect_out(*probe(shape), {1, 1.5});
  shape.spec.causal = Causal::kBottomRight;
  expect_out(*probe(shape), {2, 2.5});
}

// flash-attention: the last query sees the last of its batch's keys, wherever the plan's keys end.
TEST_P(KnownAnswers, LastKeyIsThatOfTheLength) {
  CaseShape shape = sized(4, 16);
  shape.spec.batch = 3;
  shape.spec.causal = Causal::kLastKey;
  shape.spec.key_lengths = true;
  shape.lengths = {6, 16, 2};
  expect_out(*probe(shape), {2, 2.5, 3, 3.5, 7, 7.5, 8, 8.5, 0, 0, 1, 1.5});
  shape.spec.window.left = 1;
  expect_out(*probe(shape), {2.5, 3.5, 4.5, 5.5, 12.5, 13.5, 14.5, 15.5, 0, 0, 1, 1.5});
  shape.spec.window.left = Window::kOpen;
  shape.spec.key_lengths = false;
  shape.lengths = {};
  expect_out(*probe(shape), {7, 7.5, 8, 8.5, 7, 7.5, 8, 8.5, 7, 7.5, 8, 8.5});
}

TEST_P(KnownAnswers, OffsetMovesTheDiagonal) {
  CaseShape shape = sized(2, 4);
  shape.spec.causal = Causal::kOffset;
  shape.offsets = {2};
  expect_out(*probe(shape), {2, 2.5});
}

TEST_P(KnownAnswers, OneQueryIsMaskedToo) {
  CaseShape shape = sized(1, 4);
  shape.spec.causal = Causal::kTopLeft;
  expect_out(*probe(shape), {1});
}

TEST_P(KnownAnswers, Rows4To6KindEveryAlignmentAtManySizes) {
  for (const std::int64_t queries : {1, 2, 15, 16, 33, 50}) {
    for (const std::int64_t keys : {1, 4, 16, 17, 48, 65}) {
      for (const std::int64_t offset :
           {std::int64_t{-20}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{7}, keys - queries}) {
        CaseShape shape = sized(queries, keys);
        shape.spec.causal = offset == 0                ? Causal::kTopLeft
                            : offset == keys - queries ? Causal::kBottomRight
                                                       : Causal::kOffset;
        if (shape.spec.causal == Causal::kOffset) shape.offsets = {offset};
        std::vector<double> expected;
        for (std::int64_t i = 0; i < queries; ++i) {
          const std::int64_t visible = std::clamp(i + offset + 1, std::int64_t{0}, keys);
          expected.push_back(visible == 0 ? 0 : static_cast<double>(visible + 1) / 2);
        }
        expect_out(*probe(shape), expected);
      }
    }
  }
}

TEST_P(KnownAnswers, NegativeOffsetsAreNotClamped) {
  CaseShape shape = sized(2, 4);
  shape.spec.batch = 4;
  shape.spec.causal = Causal::kOffset;
  shape.spec.key_lengths = true;
  shape.lengths = {4, 3, 2, 1};
  shape.offsets = {2, 1, 0, -1};
  expect_out(*probe(shape), {2, 2.5, 1.5, 2, 1, 1.5, 0, 1});
}

TEST_P(KnownAnswers, SoftcapComesBeforeTheMask) {
  for (const ScoresOutput mode : {ScoresOutput::kSoftcapped, ScoresOutput::kBiased}) {
    CaseShape shape = sized(1, 2);
    shape.spec.scale = 1.0f;
    shape.spec.softcap = 0.5f;
    shape.spec.mask = MaskKind::kAdditive;
    shape.spec.scores_output = mode;
    AttentionCase problem(shape);
    problem.query.fill(0);
    problem.key.fill(1);
    problem.query.at(0, 0, 0, 0) = 1;
    problem.value.at(0, 0, 0, 0) = 1;
    problem.value.at(0, 0, 1, 0) = 1000;  // a bf16 number
    problem.mask_values = {0, kHidden};
    expect_out(problem, {1});
    if (IsSkipped()) return;
    EXPECT_NEAR(problem.scores.at(0, 0, 0, 0), 0.48201f, 1e-5);
    if (mode == ScoresOutput::kSoftcapped) {
      EXPECT_NEAR(problem.scores.at(0, 0, 0, 1), 0.48201f, 1e-5);
    } else {
      EXPECT_EQ(problem.scores.at(0, 0, 0, 1), kHidden);
    }
  }
}

TEST_P(KnownAnswers, QueryHeadsShareKeyHeadsInBlocks) {
  for (const std::int64_t groups : {1, 2, 3, 8}) {
    for (const std::int64_t kv_heads : {1, 2, 4}) {
      CaseShape shape = sized(3, 5);
      shape.spec.num_heads = kv_heads * groups;
      shape.spec.num_kv_heads = kv_heads;
      const auto problem = probe(shape);
      for (std::int64_t h = 0; h < kv_heads; ++h) {
        for (std::int64_t j = 0; j < 5; ++j) problem->value.at(0, h, j, 0) = static_cast<float>(10 * (h + 1));
      }
      std::vector<double> expected;
      for (std::int64_t h = 0; h < shape.spec.num_heads; ++h) {
        expected.insert(expected.end(), 3, static_cast<double>(10 * (h / groups + 1)));
      }
      expect_out(*problem, expected);
    }
  }
}

TEST_P(KnownAnswers, HeadsInsideATokenNeedNoReshape) {
  CaseShape shape = sized(2, 2);
  shape.spec.num_heads = 2;
  shape.layout = Layout::kBshd;
  const auto problem = probe(shape);
  for (std::int64_t j = 0; j < 2; ++j) {
    for (std::int64_t h = 0; h < 2; ++h) problem->value.at(0, h, j, 0) = static_cast<float>(2 * j + h + 1);
  }
  expect_out(*problem, {2, 2, 3, 3});  // head by head: both tokens of head 0, then of head 1
}

TEST_P(KnownAnswers, CrossAttentionWithKeyPadding) {
  CaseShape shape = sized(7, 3);
  shape.spec.batch = 2;
  shape.spec.key_mask = MaskKind::kBool;
  const auto problem = probe(shape);
  problem->key_mask_bits = {1, 1, 0, 1, 0, 0};
  std::vector<double> expected(7, 1.5);
  expected.insert(expected.end(), 7, 1.0);
  expect_out(*problem, expected);
}

TEST_P(KnownAnswers, WindowIsInclusiveAtBothEnds) {
  CaseShape shape = sized(6, 6);
  shape.spec.causal = Causal::kTopLeft;
  shape.spec.window.left = 1;
  expect_out(*probe(shape), {1, 1.5, 2.5, 3.5, 4.5, 5.5});
}

TEST_P(KnownAnswers, WindowsOfAllWidths) {
  for (const std::int64_t keys : {1, 6, 16, 40}) {
    for (const std::int64_t left : {-1, 0, 1, 5, 17}) {
      for (const std::int64_t right : {-1, 0, 2, 16}) {
        CaseShape shape = sized(23, keys);
        shape.spec.window = {left, right};
        std::vector<double> expected;
        for (std::int64_t i = 0; i < 23; ++i) {
          const std::int64_t first = left < 0 ? 0 : std::max<std::int64_t>(i - left, 0);
          const std::int64_t last = right < 0 ? keys - 1 : std::min(i + right, keys - 1);
          expected.push_back(last < first ? 0 : static_cast<double>(first + last + 2) / 2);
        }
        expect_out(*probe(shape), expected);
      }
    }
  }
}

TEST_P(KnownAnswers, KeysBeyondTheLengthMayHoldNan) {
  for (const auto& [keys, length] :
       {std::pair<std::int64_t, std::int64_t>{8, 3}, {17, 16}, {49, 17}, {130, 1}, {9, 0}}) {
    CaseShape shape = sized(5, keys, 4);
    shape.spec.key_lengths = true;
    shape.lengths = {length};
    const auto problem = probe(shape);
    for (std::int64_t j = length; j < keys; ++j) {
      for (std::int64_t d = 0; d < 4; ++d) {
        problem->key.at(0, 0, j, d) = std::nanf("");
        problem->value.at(0, 0, j, d) = std::nanf("");
      }
    }
    expect_out(*problem, std::vector<double>(20, length == 0 ? 0.0 : static_cast<double>(length + 1) / 2));
  }
}

TEST_P(KnownAnswers, KeysBroadcastOverTheBatch) {
  for (const auto& [queries, d] : {std::pair<std::int64_t, std::int64_t>{40, 20}, {1, 64}, {17, 8}}) {
    CaseShape shape = sized(queries, queries, d);
    shape.spec.batch = 2;
    AttentionCase copied(shape);
    if (!refusal(GetParam(), copied.spec()).empty()) GTEST_SKIP();
    const std::int64_t width = copied.spec().head_dim;
    for (std::int64_t j = 0; j < queries; ++j) {
      for (std::int64_t c = 0; c < width; ++c) {
        copied.key.at(1, 0, j, c) = copied.key.at(0, 0, j, c);
        copied.value.at(1, 0, j, c) = copied.value.at(0, 0, j, c);
      }
    }
    run_path(GetParam(), copied);
    Strided shared({2, 1, queries, width}, Layout::kBhsd, GetParam().type);
    AttentionArgs args = copied.args();
    args.key.strides[0] = 0;
    args.value.strides[0] = 0;
    args.out = shared.view();
    run_path(GetParam(), copied.spec(), args, Threads::serial());
    each(args.out.dims, [&](auto b, auto h, auto i, auto c) {
      EXPECT_NEAR(shared.at(b, h, i, c), copied.out.at(b, h, i, c), 5 * close());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, KnownAnswers, ::testing::ValuesIn(all_paths()),
                         [](const auto& test) { return name(test.param); });

TEST(KnownRefusals, HeadsThatDoNotDivideAreRefused) {
  AttentionSpec spec;
  spec.num_heads = 5;
  spec.num_kv_heads = 2;
  try {
    const Attention attention(spec);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headway::testing
