// The table.
#include "tests/ops/graph/rule_cases.h"

namespace headway::testing {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr DataType kI64 = DataType::kI64;
constexpr DataType kBool = DataType::kBool;

RuleInput f32(Ints dims) { return {DataType::kF32, std::move(dims), false, {}, true}; }
RuleInput weight(Ints dims) { return {DataType::kF32, std::move(dims), true, {}, true}; }
RuleInput of(DataType type, Ints dims) { return {type, std::move(dims), false, {}, true}; }
RuleInput ints(Ints numbers) {
  return {kI64, {static_cast<std::int64_t>(numbers.size())}, true, std::move(numbers), true};
}
RuleInput one(std::int64_t number) { return {kI64, {}, true, {number}, true}; }
RuleInput absent() { return {DataType::kF32, {}, false, {}, false}; }

void add_simple(std::vector<RuleCase>* cases) {
  for (const char* const op : {"Abs",   "Neg",     "Sign",     "Relu",
                               "Exp",   "Log",     "Sqrt",     "Reciprocal",
                               "Erf",   "Tanh",    "Sigmoid",  "Softplus",
                               "Sin",   "Cos",     "Tan",      "Floor",
                               "Ceil",  "Round",   "Gelu",     "com.microsoft.Gelu",
                               "IsNaN", "IsInf",   "Identity", "Softmax",
                               "Trilu", "Dropout", "Swish",    "com.microsoft.QuickGelu"}) {
    cases->push_back({op, {f32({2, 3, 4})}, {}});
  }
  for (const char* const op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow", "Equal", "Less",
                               "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    cases->push_back({op, {f32({2, 3, 4}), f32({3, 1})}, {}});
  }
  for (const char* const op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Mod"}) {
    cases->push_back({op, {ints({6, 4, 12}), ints({2})}, {}});
  }
  for (const char* const op : {"And", "Or", "Xor"}) cases->push_back({op, {of(kBool, {2, 3}), of(kBool, {3})}, {}});
  cases->push_back({"Not", {of(kBool, {2, 3})}, {}});
  cases->push_back({"Where", {of(kBool, {2, 1}), f32({2, 3}), f32({3})}, {}});
  cases->push_back({"Clip", {f32({2, 3}), f32({}), f32({1})}, {}});
  cases->push_back({"Cast", {f32({2, 3})}, {{"to", std::int64_t{7}}}});
  cases->push_back({"Cast", {ints({3, 4})}, {{"to", std::int64_t{6}}}});
  cases->push_back({"CastLike", {f32({2, 3}), of(kI64, {4})}, {}});
  for (const char* const op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare",
                               "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}) {
    cases->push_back({op, {f32({2, 3, 4}), ints({-1, 0})}, {{"keepdims", std::int64_t{0}}}});
  }
  cases->push_back({"CumSum", {f32({2, 3}), one(1)}, {}});
  cases->push_back({"LayerNormalization", {f32({2, 3, 4}), f32({4}), f32({3, 4})}, {{"axis", std::int64_t{-2}}}, 3});
  cases->push_back({"RMSNormalization", {f32({2, 3, 4}), f32({4})}, {}});
  for (const char* const op : {"SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization"}) {
    cases->push_back({op, {f32({2, 3, 4}), f32({4})}, {}, 2});
  }
  cases->push_back({"com.microsoft.SkipLayerNormalization", {f32({2, 3, 4}), f32({3, 4}), f32({4}), f32({4})}, {}, 4});
  cases->push_back({"com.microsoft.SkipSimplifiedLayerNormalization", {f32({2, 3, 4}), f32({1, 3, 4}), f32({4})}, {}});
}

void add_shapes(std::vector<RuleCase>* cases) {
  cases->push_back({"Reshape", {f32({2, 3, 4}), ints({0, -1})}, {}});
  cases->push_back({"Reshape", {f32({2, 3, 4}), ints({2, 12})}, {}});
  cases->push_back({"Reshape", {f32({2, 3, 4})}, {{"dims", Ints{6, 4}}}});
  cases->push_back({"Flatten", {f32({2, 3, 4})}, {{"axis", std::int64_t{2}}}});
  cases->push_back({"Squeeze", {f32({2, 1, 4}), ints({1})}, {}});
  cases->push_back({"Squeeze", {f32({2, 1, 4})}, {}});
  cases->push_back({"Unsqueeze", {f32({2, 3}), ints({0, -1})}, {}});
  cases->push_back({"Transpose", {f32({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}});
  cases->push_back({"Expand", {f32({3, 1}), ints({2, 3, 4})}, {}});
  cases->push_back({"Tile", {f32({3, 2}), ints({2, 3})}, {}});
  cases->push_back({"Concat", {f32({2, 3}), f32({2, 4})}, {{"axis", std::int64_t{1}}}});
  cases->push_back({"Concat", {ints({2, 3}), ints({4})}, {{"axis", std::int64_t{0}}}});
  cases->push_back({"Split", {f32({2, 6})}, {{"axis", std::int64_t{1}}}, 3});
  cases->push_back({"Split", {f32({2, 7}), ints({3, 4})}, {{"axis", std::int64_t{1}}}, 2});
  cases->push_back({"Split", {f32({2, 7})}, {{"axis", std::int64_t{1}}, {"num_outputs", std::int64_t{3}}}, 3});
  cases->push_back({"Slice", {f32({4, 6}), ints({1, -1}), ints({3, -100}), ints({0, 1}), ints({1, -2})}, {}});
  cases->push_back({"Slice", {f32({4, 6}), ints({0}), ints({3})}, {}});
  cases->push_back({"Slice", {ints({2, 3, 4}), ints({1}), ints({3})}, {}});
  cases->push_back({"Gather", {f32({4, 3}), of(kI64, {2, 2})}, {{"axis", std::int64_t{-1}}}});
  cases->push_back({"Gather", {ints({2, 3, 4}), one(-1)}, {}});
  cases->push_back({"GatherND", {f32({4, 3, 2}), of(kI64, {4, 2})}, {}});
  cases->push_back({"GatherND", {f32({4, 3, 2}), of(kI64, {4, 1})}, {{"batch_dims", std::int64_t{1}}}});
  cases->push_back({"GatherElements", {f32({4, 3}), of(kI64, {2, 3})}, {}});
  cases->push_back({"If", {of(kBool, {}), f32({2, 3}), f32({2, 3})}, {}});
  cases->push_back({"Pad", {f32({2, 3}), ints({1, 0, 0, -1})}, {}});
  cases->push_back({"Pad", {f32({2, 3}), ints({1, 2}), f32({}), ints({-1})}, {{"mode", std::string("edge")}}});
  cases->push_back({"Shape", {f32({2, 3, 4})}, {{"start", std::int64_t{1}}}});
  cases->push_back({"Size", {f32({2, 3, 4})}, {}});
  cases->push_back({"ConstantOfShape", {ints({2, 3}), one(7)}, {}});
  cases->push_back({"ConstantOfShape", {ints({3}), one(7)}, {}});
  cases->push_back({"Range", {one(0), one(6), one(1)}, {}});
  cases->push_back({"Range", {one(7), one(0), one(-2)}, {}});
}

void add_products(std::vector<RuleCase>* cases) {
  cases->push_back({"MatMul", {f32({2, 1, 3, 4}), f32({6, 4, 8})}, {}});
  cases->push_back({"MatMul", {f32({4}), f32({2, 4, 3})}, {}});
  cases->push_back(
      {"Gemm", {f32({4, 3}), f32({6, 4}), f32({6})}, {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}}});
  cases->push_back({"Einsum", {f32({2, 3, 4}), f32({2, 4, 6})}, {{"equation", std::string("bij,bjk->bik")}}});
  cases->push_back({"Einsum", {f32({2, 3, 4}), f32({4, 3})}, {{"equation", std::string("...ij,ji->...i")}}});
  cases->push_back({"Conv",
                    {f32({2, 4, 8, 8}), f32({6, 2, 3, 3}), f32({6})},
                    {{"group", std::int64_t{2}}, {"pads", Ints{1, 1, 0, 0}}}});
  cases->push_back({"Linear", {f32({2, 3, 4}), weight({4, 6}), weight({6})}, {{"activation", std::string("gelu")}}});
}

void add_attention(std::vector<RuleCase>* cases) {
  cases->push_back({"Attention",
                    {f32({2, 4, 3, 8}), f32({2, 2, 6, 8}), f32({2, 2, 6, 5}), f32({2, 1, 3, 6})},
                    {{"scores", std::string("probabilities")}},
                    2});
  cases->push_back(
      {"Attention",
       {f32({2, 3, 4, 8}), f32({2, 6, 4, 8}), f32({2, 6, 4, 8})},
       {{"query_axes", Ints{0, 2, 1, 3}}, {"key_axes", Ints{0, 2, 1, 3}}, {"value_axes", Ints{0, 2, 1, 3}}}});
  cases->push_back({"MultiHeadAttention",
                    {f32({2, 3, 8}), absent(), absent(), weight({8, 8}), weight({8, 8}), weight({8, 8}), weight({8, 8}),
                     weight({8})},
                    {{"num_heads", std::int64_t{2}}}});
  cases->push_back(
      {"onnx.Attention", {f32({2, 4, 3, 8}), f32({2, 2, 6, 8}), f32({2, 2, 6, 5}), of(kBool, {3, 6})}, {}});
  cases->push_back({"onnx.Attention",
                    {f32({2, 3, 8}), f32({2, 1, 4}), f32({2, 1, 6}), absent(), f32({2, 2, 5, 2}), f32({2, 2, 5, 3})},
                    {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}},
                    4});
  cases->push_back(
      {"onnx.Attention",
       {f32({2, 4, 3, 8}), f32({2, 4, 6, 8}), f32({2, 4, 6, 8}), absent(), absent(), absent(), of(kI64, {2})},
       {{"is_causal", std::int64_t{1}}}});
  cases->push_back({"RotaryEmbedding", {f32({2, 4, 3, 8}), f32({2, 3, 4}), f32({2, 3, 4})}, {}});
  cases->push_back({"RotaryEmbedding",
                    {f32({2, 3, 8}), f32({12, 2}), f32({12, 2}), of(kI64, {2, 3})},
                    {{"num_heads", std::int64_t{2}}}});
  cases->push_back({"com.microsoft.RotaryEmbedding", {f32({2, 3, 8}), of(kI64, {1}), f32({12, 2}), f32({12, 2})}, {}});
  cases->push_back({"com.microsoft.MultiHeadAttention",
                    {f32({2, 3, 8}), f32({2, 5, 8}), f32({2, 5, 4}), f32({20}), of(DataType::kI32, {2, 5})},
                    {{"num_heads", std::int64_t{2}}},
                    3});
  cases->push_back({"com.microsoft.MultiHeadAttention", {f32({2, 3, 2, 3, 4})}, {{"num_heads", std::int64_t{2}}}});
  const Attributes grouped = {{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}};
  cases->push_back({"com.microsoft.GroupQueryAttention",
                    {f32({2, 3, 32}), f32({2, 3, 16}), f32({2, 3, 16}), f32({2, 2, 5, 8}), f32({2, 2, 5, 8}),
                     of(DataType::kI32, {2}), of(DataType::kI32, {1})},
                    grouped,
                    3});
  cases->push_back({"com.microsoft.GroupQueryAttention",
                    {f32({2, 3, 64}), absent(), absent(), absent(), absent(), of(DataType::kI32, {2}),
                     of(DataType::kI32, {}), absent(), absent(), absent(), f32({2, 1, 3, 3}), f32({4})},
                    grouped});
  cases->push_back({"com.microsoft.Attention",
                    {f32({2, 3, 6}), weight({6, 24}), weight({24}), of(DataType::kI32, {2}), f32({2, 2, 2, 5, 4}),
                     f32({1, 2, 3, 8})},
                    {{"num_heads", std::int64_t{2}}},
                    2});
}

}  // namespace

std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> cases;
  add_simple(&cases);
  add_shapes(&cases);
  add_products(&cases);
  add_attention(&cases);
  return cases;
}

}  // namespace headway::testing
