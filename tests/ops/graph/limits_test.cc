// Numbers and sizes that only a hostile file has: refused or computed at once, never walked.
#include <gtest/gtest.h>

#include <limits>

#include "headway/attention.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTera = std::int64_t{1} << 40;

Tensor pad(const std::string& mode, const std::vector<std::int64_t>& pads, Tensor x) {
  return run_op("Pad", list(std::move(x), axis_list(pads)), {{"mode", mode}}, 1);
}

TEST(PadLimits, APadAsLowAsNumbersGoTakesTheWholeAxis) {
  // 2 − 2^63 + (2^63 − 1) is 1 element, none of which is of the input.
  EXPECT_EQ(values_of<float>(pad("constant", {kLow, kHigh}, counted({2}))), (std::vector<float>{0}));
  EXPECT_EQ(values_of<float>(pad("constant", {-2, 3}, floats({2}, {5, 6}))), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(values_of<float>(pad("constant", {-1, 2}, floats({2}, {5, 6}))), (std::vector<float>{6, 0, 0}));
}

TEST(PadLimits, EdgeBeyondTheAxis) {
  EXPECT_EQ(values_of<float>(pad("edge", {kLow, kHigh}, floats({2}, {5, 6}))), (std::vector<float>{6}));
  EXPECT_EQ(values_of<float>(pad("edge", {0, 1, 1, 2}, floats({2, 2}, {1, 2, 3, 4}))),
            (std::vector<float>{1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 3, 3, 4, 4, 4}));
}

TEST(PadLimits, WrapAndReflect) {
  EXPECT_EQ(values_of<float>(pad("wrap", {4, 1}, floats({3}, {1, 2, 3}))),
            (std::vector<float>{3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(values_of<float>(pad("reflect", {2, 2}, floats({3}, {1, 2, 3}))),
            (std::vector<float>{3, 2, 1, 2, 3, 2, 1}));
}

TEST(PadLimits, AnEdgeOfATeraIsRefusedByItsMemory) {
  const std::string text = error_of([] { pad("edge", {0, kTera << 4}, counted({2})); }, ErrorCode::kOutOfMemory);
  expect_contains(text, "of node 'node' (Pad)");
}

/// A constant bomb of 2^50 elements for each operator that can make one.
TEST(Bombs, AreRefusedByTheMemoryOfTheMachine) {
  const auto refused = [](const std::string& op, auto... tensors) {
    const std::string text = error_of([&] { run_op(op, list(std::move(tensors)...), {}, 0); }, ErrorCode::kOutOfMemory);
    expect_contains(text, "(" + op + ")");
  };
  const auto number = [](std::int64_t value) { return integers({}, {value}); };
  const std::int64_t huge = kTera << 10;
  refused("Range", number(0), number(huge), number(1));
  refused("Expand", floats({1}, {1}), axis_list({huge}));
  refused("Tile", floats({1}, {1}), axis_list({huge}));
  refused("ConstantOfShape", axis_list({huge}));
  refused("Pad", floats({1}, {1}), axis_list({0, huge}));
}

TEST(Bombs, ElementsThatDoNotFit63BitsAreRefused) {
  const std::string text = error_of([] {
    run_op("Expand", list(floats({1, 1}, {1}), axis_list({kTera, kTera})), {}, 0);
  });
  expect_contains(text, "do");
  expect_contains(text, "not fit 63 bits");
}

/// Inputs of 2^40 × 0 elements: an operator that walks its rows would take hours.
TEST(EmptyTensors, NoOperatorWalksTheRowsOfOne) {
  const auto tall = [] { return Tensor(DataType::kF32, {kTera, 0}); };
  for (const char* op : {"Relu", "Softmax", "Identity", "Erf", "Gelu"}) {
    EXPECT_EQ(run_op(op, list(tall())).dims(), (Dims{kTera, 0})) << op;
  }
  EXPECT_EQ(run_op("Add", list(tall(), tall())).count(), 0);
  EXPECT_EQ(run_op("LayerNormalization", list(tall(), Tensor(DataType::kF32, {0}))).count(), 0);
  EXPECT_EQ(run_op("MatMul", list(tall(), Tensor(DataType::kF32, {0, 0}))).count(), 0);
  EXPECT_EQ(run_op("Gather", list(tall(), Tensor(DataType::kI64, {kTera, 0}))).dims(), (Dims{kTera, 0, 0}));
  EXPECT_EQ(run_op("Concat", list(tall(), tall()), {{"axis", std::int64_t{0}}}).dims(), (Dims{2 * kTera, 0}));
  EXPECT_EQ(run_op("Transpose", list(tall())).dims(), (Dims{0, kTera}));
  EXPECT_EQ(run_op("CumSum", list(tall(), integers({}, {0})), {}, 1).count(), 0);
  EXPECT_EQ(run_op("Trilu", list(tall())).count(), 0);
}

TEST(EmptyTensors, SumsOverNothingAreZeroAtOnce) {
  const auto tall = [] { return Tensor(DataType::kF32, {kTera, 0}); };
  EXPECT_EQ(values_of<float>(run_op("ReduceSum", list(tall()), {{"keepdims", std::int64_t{0}}})),
            std::vector<float>{0});
  EXPECT_EQ(values_of<float>(run_op("Einsum", list(tall()), {{"equation", std::string("ij->")}})),
            std::vector<float>{0});
  EXPECT_EQ(values_of<float>(run_op("Einsum", list(tall()), {{"equation", std::string("ji->")}})),
            std::vector<float>{0});
}

TEST(AttentionLimits, AnEmptyHeadOfManyQueriesEndsAtOnce) {
  const auto many = [] { return Tensor(DataType::kF32, {1, 1, kTera >> 4, 0}); };
  EXPECT_EQ(run_op("onnx.Attention", list(many(), many(), many())).dims(), (Dims{1, 1, kTera >> 4, 0}));
}

TEST(AttentionLimits, LengthsOutsideTheKeysAreRefusedBeforeTheyAreUsed) {
  const auto head = [] { return counted({1, 1, 2, 2}); };
  for (const std::int64_t length : {kLow, kHigh, std::int64_t{-1}, std::int64_t{3}}) {
    const std::string text = error_of([&] {
      run_node("onnx.Attention", list(head(), head(), head(), integers({1}, {length})),
               {{"is_causal", std::int64_t{1}}}, {.first_constant = 9, .absent = {3, 4, 5}});
    });
    expect_contains(text, "nonpad_kv_seqlen[0] is " + std::to_string(length) + ", expected 0 to 2");
  }
}

TEST(AttentionLimits, NominalFlopsSaturate) {
  AttentionSpec spec;
  spec.batch = 1 << 20;
  spec.num_kv_heads = spec.num_heads = 1 << 20;
  spec.query_len = spec.key_len = 1 << 20;
  spec.value_head_dim = spec.head_dim = 64;
  EXPECT_EQ(nominal_attention_flops(spec), kHigh);
}

TEST(AttentionLimits, NominalFlopsOfCausalAndWindowsWalkNoRows) {
  AttentionSpec spec;
  spec.batch = 1, spec.num_heads = 1, spec.num_kv_heads = 1;
  spec.value_head_dim = spec.head_dim = 1;
  spec.query_len = spec.key_len = std::int64_t{1} << 28;
  spec.causal = Causal::kTopLeft;
  const std::int64_t n = spec.query_len;
  EXPECT_EQ(nominal_attention_flops(spec), 2 * 2 * (n * (n + 1) / 2));
  spec.window.left = 9;
  EXPECT_EQ(nominal_attention_flops(spec), 2 * 2 * (10 * n - 45));
}

}  // namespace
}  // namespace headway::testing
