// com.microsoft's attention where ONNX Runtime gives no numbers: narrow types, rows that are masked everywhere,
// refusals.
#include <limits>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

constexpr const char* kMha = "com.microsoft.MultiHeadAttention";
constexpr const char* kAttention = "com.microsoft.Attention";
constexpr std::size_t kNoConstant = SIZE_MAX;

Attributes heads(std::int64_t count) { return {{"num_heads", Attribute(count)}}; }
Attributes heads(std::int64_t count, const char* key, Attribute value) {
  Attributes attributes = heads(count);
  attributes.set(key, std::move(value));
  return attributes;
}

/// A copy in another float type.
Tensor as_type(const Tensor& tensor, DataType type) { return numbers(type, tensor.dims(), as_doubles(tensor)); }

/// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value of 2 heads of 4.
std::vector<Tensor> every_input() {
  Random random(5);
  return list(random_tensor({2, 3, 8}, &random), random_tensor({2, 3, 8}, &random), random_tensor({2, 3, 8}, &random),
              random_tensor({24}, &random), tensor_of<std::int32_t>({2}, {4, 5}), random_tensor({1, 2, 3, 5}, &random),
              random_tensor({2, 2, 2, 4}, &random), random_tensor({2, 2, 2, 4}, &random));
}

void expect_near(const Tensor& got, const Tensor& expected, double bound) {
  ASSERT_EQ(got.dims(), expected.dims());
  const std::vector<double> a = as_doubles(got);
  const std::vector<double> b = as_doubles(expected);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << i;
}

TEST(MicrosoftAttention, NarrowTypesAreComputedInF32) {
  for (const auto& [type, bound] : {std::pair(DataType::kF16, 4e-3), std::pair(DataType::kBF16, 3e-2)}) {
    std::vector<Tensor> narrow, wide;
    for (const Tensor& tensor : every_input()) {
      const bool is_mask = tensor.type() == DataType::kI32;
      narrow.push_back(is_mask ? tensor_of<std::int32_t>({2}, {4, 5}) : as_type(tensor, type));
      wide.push_back(is_mask ? tensor_of<std::int32_t>({2}, {4, 5}) : as_type(narrow.back(), DataType::kF32));
    }
    const NodeRun options{.first_constant = kNoConstant, .outputs = 4};
    const std::vector<Tensor> got = run_node(kMha, std::move(narrow), heads(2), options);
    const std::vector<Tensor> expected = run_node(kMha, std::move(wide), heads(2), options);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].type(), type);
      expect_near(got[i], expected[i], bound);
    }
  }
}

TEST(MicrosoftAttention, NarrowWeightsAreWidenedOnce) {
  Random random(6);
  const Tensor x = random_tensor({2, 3, 8}, &random);
  const Tensor w = random_tensor({8, 24}, &random, 0.3f);
  const Tensor b = random_tensor({24}, &random);
  const Tensor past = random_tensor({2, 2, 2, 2, 4}, &random);
  const auto run_in = [&](DataType type) {
    return run_node(kAttention, list(as_type(x, type), as_type(w, type), as_type(b, type), as_type(past, type)),
                    heads(2), {.outputs = 2, .absent = {3}});
  };
  // Everything but x is a constant here, the past too.
  const std::vector<Tensor> expected = run_in(DataType::kF32);
  const std::vector<Tensor> got = run_in(DataType::kF16);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].type(), DataType::kF16);
    expect_near(got[i], expected[i], 1e-2);
  }
}

TEST(MicrosoftAttention, ARowThatIsMaskedEverywhereIsAsIfItHadNoMask) {
  Random random(7);
  const Tensor q = random_tensor({1, 3, 8}, &random);
  const auto run_with = [&](std::vector<std::int32_t> mask, float filter) {
    return run_node(kMha,
                    list(as_type(q, DataType::kF32), as_type(q, DataType::kF32), as_type(q, DataType::kF32),
                         tensor_of<std::int32_t>({1, 3}, mask)),
                    heads(2, "mask_filter_value", filter), {.first_constant = kNoConstant, .absent = {3}});
  };
  const std::vector<Tensor> open = run_with({1, 1, 1}, -1024);
  expect_near(run_with({0, 0, 0}, -1024)[0], open[0], 1e-3);
  // One that is hidden for good leaves nothing.
  const std::vector<Tensor> empty = run_with({0, 0, 0}, -std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < empty[0].count(); ++i) EXPECT_EQ(empty[0].data<float>()[i], 0);
}

std::string refused(std::vector<Tensor> tensors, const Attributes& attributes, std::vector<std::size_t> absent = {},
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  return error_of(
      [&] { run_node(kMha, std::move(tensors), attributes, {.first_constant = kNoConstant, .absent = absent}); }, code);
}

TEST(MicrosoftAttention, RefusalsNameTheInputAndBothNumbers) {
  const auto f32 = [](const Dims& dims) { return counted(dims); };
  const std::string need_heads = refused(list(f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 8})), heads(3));
  expect_contains(need_heads, "com.microsoft.MultiHeadAttention query is 8 wide, expected a multiple of num_heads = 3");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 4, 6}), f32({1, 4, 8})), heads(2)),
                  "key has dims [1, 4, 6], expected [1, 4, 8]");
  expect_contains(refused(list(f32({1, 3, 24})), heads(2)), "query has rank 3, expected 5 where there is no key");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 8}), f32({8})), heads(2)),
                  "bias has dims [8], expected [24]");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 4, 8}), f32({1, 4, 8}), f32({1, 4})), heads(2), {3}),
                  "key_padding_mask is f32, expected i32");
  expect_contains(
      refused(list(f32({1, 3, 8}), f32({1, 4, 8}), f32({1, 4, 8}), tensor_of<std::int32_t>({1, 3}, {1, 1, 1})),
              heads(2), {3}),
      "key_padding_mask has dims [1, 3], expected [1, 4]");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 4, 8}), f32({1, 4, 8}), f32({1, 1, 1, 4})), heads(2), {3, 4}),
                  "attention_bias has dims [1, 1, 1, 4], expected [1, 2, 3, 4]");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 4, 8}), f32({1, 4, 8})),
                          heads(2, "unidirectional", std::int64_t{1}), {}, ErrorCode::kUnsupported),
                  "unidirectional with 3 queries and 4 new keys is not supported");
  expect_contains(refused(list(f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 8}), tensor_of<std::int32_t>({1}, {1})),
                          heads(2), {3, 4, 5, 6, 7}, ErrorCode::kUnsupported),
                  "past_sequence_length (input 8) is not supported");
}

TEST(MicrosoftAttention, ThePackedLayerRefusesToo) {
  const auto f32 = [](const Dims& dims) { return counted(dims); };
  expect_contains(refusal(kAttention, list(f32({1, 3, 4}), f32({4, 10})), heads(1)), "weights has 10 columns");
  expect_contains(refusal(kAttention, list(f32({1, 3, 4}), f32({5, 12})), heads(1)), "weights has dims [5, 12]");
  expect_contains(refusal(kAttention, list(f32({1, 3, 4}), f32({4, 12})),
                          heads(1, "qkv_hidden_sizes", std::vector<std::int64_t>{4, 4, 3})),
                  "qkv_hidden_sizes is 11 together, expected 12");
  for (const char* const attribute : {"do_rotary", "past_present_share_buffer"}) {
    expect_contains(refusal(kAttention, list(f32({1, 3, 4}), f32({4, 12})), heads(1, attribute, std::int64_t{1}),
                            ErrorCode::kUnsupported),
                    std::string(attribute) + " is 1, which is not supported");
  }
  expect_contains(error_of([&] {
                    run_node(kAttention, list(f32({1, 3, 4}), f32({4, 12})), heads(1), {.first_constant = kNoConstant});
                  }),
                  "weights is computed at run time, expected a constant");
}

}  // namespace
}  // namespace headway::testing
