// Tests of the tests: an attention with one small fault must fail the comparison that the right one passes; and the
// comparison must reject NaN, a sign flip, zeros and a shifted row.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/reference/reference_attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"

namespace headway::testing {
namespace {

/// Computes `problem` by the reference from a spec and arguments that `spoil` has tampered with, and compares the
/// output with that of the untouched ones.
using Spoil = std::function<void(AttentionSpec&, AttentionArgs&)>;
Comparison compare_spoiled(AttentionCase& problem, const Spoil& spoil) {
  const Expected expected(problem.spec(), problem.args());
  AttentionSpec spec = problem.spec();
  AttentionArgs args = problem.args();
  spoil(spec, args);
  problem.poison_outputs();
  reference_attention(spec, args);
  return expected.compare(problem.args());
}

/// In both element types.
class Mutations : public ::testing::TestWithParam<DataType> {
 protected:
  static CaseShape shape_for_mutations(std::int64_t heads, std::int64_t keys) {
    CaseShape shape;
    shape.spec.type = GetParam();
    shape.spec.num_heads = heads;
    shape.spec.query_len = 33;
    shape.spec.key_len = keys;
    shape.spec.head_dim = 16;
    return shape;
  }
};

TEST_P(Mutations, TheRightOnePasses) {
  for (const std::int64_t keys : {17, 33, 133}) {
    CaseShape shape = shape_for_mutations(3, keys);
    shape.spec.mask = MaskKind::kBool;
    AttentionCase problem(shape);
    const Comparison comparison = compare_spoiled(problem, [](auto&, auto&) {});
    EXPECT_TRUE(comparison.ok()) << comparison.failure;
  }
}

TEST_P(Mutations, DroppedMaskFails) {
  for (const MaskKind kind : {MaskKind::kBool, MaskKind::kAdditive}) {
    for (const double hidden : {0.02, 0.5}) {
      CaseShape shape = shape_for_mutations(2, 133);
      shape.spec.mask = kind;
      shape.hidden = hidden;
      AttentionCase problem(shape);
      EXPECT_FALSE(
          compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) { spec.mask = MaskKind::kNone; }).ok());
    }
  }
}

TEST_P(Mutations, WrongPolarityFails) {
  CaseShape shape = shape_for_mutations(2, 49);
  shape.spec.mask = MaskKind::kBool;
  AttentionCase problem(shape);
  EXPECT_FALSE(compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) {
                 spec.mask_polarity = MaskPolarity::kTrueHides;
               }).ok());
}

TEST_P(Mutations, SwappedHeadsFail) {
  for (const std::int64_t heads : {2, 12}) {
    AttentionCase problem(shape_for_mutations(heads, 49));
    const Comparison comparison = compare_spoiled(problem, [](AttentionSpec&, AttentionArgs& args) {
      // Heads in descending order: a negative stride from the last one.
      args.value.data +=
          args.value.strides[1] * (args.value.dims[1] - 1) * static_cast<std::int64_t>(size_bytes(args.value.type));
      args.value.strides[1] = -args.value.strides[1];
    });
    EXPECT_FALSE(comparison.ok());
  }
}

TEST_P(Mutations, WrongHeadGroupingFails) {
  CaseShape shape = shape_for_mutations(4, 49);
  shape.spec.num_kv_heads = 2;
  AttentionCase problem(shape);
  const Expected expected(problem.spec(), problem.args());
  AttentionArgs args = problem.args();
  AttentionSpec one_head = problem.spec();
  one_head.num_kv_heads = one_head.num_heads = 1;
  for (std::int64_t h = 0; h < 4; ++h) {  // head h takes key head h mod 2 instead of h / 2
    AttentionArgs one = args;
    one.query = args.query.sliced(1, h, h + 1);
    one.key = args.key.sliced(1, h % 2, h % 2 + 1);
    one.value = args.value.sliced(1, h % 2, h % 2 + 1);
    one.out = args.out.sliced(1, h, h + 1);
    reference_attention(one_head, one);
  }
  EXPECT_FALSE(expected.compare(args).ok());
}

TEST_P(Mutations, IgnoredScaleFails) {
  AttentionCase problem(shape_for_mutations(2, 49));
  EXPECT_FALSE(compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) { spec.scale = 1.0f; }).ok());
  EXPECT_FALSE(
      compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) { spec.scale = *spec.scale * 1.001f; }).ok());
}

TEST_P(Mutations, SkippedTailFails) {
  for (const std::int64_t keys : {17, 49, 133}) {  // the last key of the row is in no full vector of 8 or 16
    AttentionCase problem(shape_for_mutations(2, keys));
    const Comparison comparison = compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs& args) {
      spec.key_len -= 1;
      args.key = args.key.sliced(2, 0, spec.key_len);
      args.value = args.value.sliced(2, 0, spec.key_len);
    });
    EXPECT_FALSE(comparison.ok()) << keys;
  }
}

TEST_P(Mutations, CausalOffByOneFails) {
  for (const std::int64_t offset : {-1, 1}) {
    CaseShape shape = shape_for_mutations(2, 33);
    shape.spec.causal = Causal::kTopLeft;
    AttentionCase problem(shape);
    const std::int64_t offsets[] = {offset};
    EXPECT_FALSE(compare_spoiled(problem, [&](AttentionSpec& spec, AttentionArgs& args) {
                   spec.causal = Causal::kOffset;
                   args.offsets = view_of(offsets, Dims{1});
                 }).ok());
  }
}

TEST_P(Mutations, WindowOffByOneFails) {
  CaseShape shape = shape_for_mutations(2, 33);
  shape.spec.causal = Causal::kTopLeft;
  shape.spec.window.left = 5;
  AttentionCase problem(shape);
  EXPECT_FALSE(compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) { spec.window.left = 4; }).ok());
}

/// The softcap goes over the scores, then the mask is added. The wrong order is computed here in double.
TEST_P(Mutations, SoftcapAfterTheMaskFails) {
  CaseShape shape = shape_for_mutations(2, 33);
  shape.spec.softcap = 2.0f;
  shape.spec.mask = MaskKind::kAdditive;
  shape.hidden = 0;  // finite numbers only: a hidden key is hidden in either order
  AttentionCase problem(shape);
  const AttentionSpec& spec = problem.spec();
  const Expected expected(spec, problem.args());
  const auto softmax_of = [&](bool mask_first) {
    each(problem.out.view().dims, [&](auto b, auto h, auto i, auto d) {
      double sum = 0, weighted = 0;
      for (std::int64_t j = 0; j < spec.key_len; ++j) {
        double score = 0;
        for (std::int64_t c = 0; c < spec.head_dim; ++c) {
          const float q = problem.query.at(b, h, i, c), k = problem.key.at(b, h, j, c);
          score += static_cast<double>(q) * static_cast<double>(k);
        }
        score *= static_cast<double>(*spec.scale);
        const double mask = static_cast<double>(problem.mask_values[static_cast<std::size_t>(i * spec.key_len + j)]);
        const auto cap = [](double x) { return 2 * std::tanh(x / 2); };
        const double p = std::exp(mask_first ? cap(score + mask) : cap(score) + mask);
        const float v = problem.value.at(b, h, j, d);
        sum += p;
        weighted += p * static_cast<double>(v);
      }
      problem.out.at(b, h, i, d) = static_cast<float>(weighted / sum);
    });
  };
  AttentionArgs args = problem.args();
  args.log_sum_exp = {};  // out alone is computed here
  softmax_of(false);
  EXPECT_TRUE(expected.compare(args).ok()) << "the right order, or the test computes something else";
  softmax_of(true);
  EXPECT_FALSE(expected.compare(args).ok());
}

TEST_P(Mutations, DroppedSoftcapFails) {
  CaseShape shape = shape_for_mutations(2, 33);
  shape.spec.softcap = 0.5f;
  AttentionCase problem(shape);
  EXPECT_FALSE(compare_spoiled(problem, [](AttentionSpec& spec, AttentionArgs&) { spec.softcap = 0; }).ok());
}

/// The comparison itself, on outputs spoiled by hand.
class Comparator : public Mutations {
 protected:
  Comparator() : problem_(shape_for_mutations(2, 49)), expected_(problem_.spec(), problem_.args()) {
    reference_attention(problem_.spec(), problem_.args());
  }
  bool accepts() { return expected_.compare(problem_.args()).ok(); }
  Element element() { return problem_.out.at(0, 1, 20, 7); }

  AttentionCase problem_;
  Expected expected_;
};

TEST_P(Comparator, AcceptsTheExactResultAndRejectsOneWrongElement) {
  EXPECT_TRUE(accepts());
  const float right = element();
  const float off = GetParam() == DataType::kBF16 ? 1.012f : 1.001f;  // a step of bf16 or two
  for (const float wrong : {std::nanf(""), -right, 0.0f, right * off, INFINITY, -INFINITY}) {
    element() = wrong;
    EXPECT_FALSE(accepts()) << wrong;
  }
  element() = right;
  EXPECT_TRUE(accepts());
}

TEST_P(Comparator, RejectsZeros) {
  problem_.out.fill(0);
  EXPECT_FALSE(accepts());
}

TEST_P(Comparator, RejectsAFlippedSign) {
  each(problem_.out.view().dims,
       [&](auto b, auto h, auto i, auto d) { problem_.out.at(b, h, i, d) = -problem_.out.at(b, h, i, d); });
  EXPECT_FALSE(accepts());
}

TEST_P(Comparator, RejectsAnUnwrittenOutput) {
  problem_.out.poison();
  EXPECT_FALSE(accepts());
}

TEST_P(Comparator, RejectsRowsShiftedByOne) {
  for (std::int64_t i = 32; i > 0; --i) {
    for (std::int64_t d = 0; d < 16; ++d) problem_.out.at(0, 0, i, d) = problem_.out.at(0, 0, i - 1, d);
  }
  EXPECT_FALSE(accepts());
}

TEST_P(Comparator, RejectsANumberWhereNanBelongs) {
  problem_.query.at(0, 0, 4, 0) = std::nanf("");
  expected_ = Expected(problem_.spec(), problem_.args());
  EXPECT_FALSE(accepts());  // the output still holds numbers in that row
  reference_attention(problem_.spec(), problem_.args());
  EXPECT_TRUE(accepts());
}

INSTANTIATE_TEST_SUITE_P(Types, Mutations, ::testing::Values(DataType::kF32, DataType::kBF16),
                         [](const auto& test) { return std::string(headway::type_name(test.param)); });
INSTANTIATE_TEST_SUITE_P(Types, Comparator, ::testing::Values(DataType::kF32, DataType::kBF16),
                         [](const auto& test) { return std::string(headway::type_name(test.param)); });

}  // namespace
}  // namespace headway::testing
