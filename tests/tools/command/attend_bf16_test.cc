// headway attend on bf16 files: what it computes and writes, and that types are not mixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/base/numeric.h"
#include "tests/tools/command/command.h"

namespace headway {
namespace {

Tensor halves(const Tensor& whole) {
  Tensor out(DataType::kBF16, whole.dims());
  std::transform(whole.data<float>(), whole.data<float>() + whole.count(), out.data<BFloat16>(), to_bfloat16);
  return out;
}

std::vector<float> load_halves(const CommandFolder& folder, const std::string& name, const std::string& tensor) {
  const SafetensorsFile file = SafetensorsFile::open(folder.path(name));
  const ConstTensorView view = file.tensor(tensor);
  std::vector<float> out;
  for (std::int64_t i = 0; i < view.count(); ++i) out.push_back(widen(view.as<BFloat16>()[i]));
  return out;
}

/// A layer of E = 8 with weights and inputs that bf16 has exactly, in both types.
struct Bf16Layer {
  Bf16Layer() {
    for (const auto& [name, dims, seed] : {std::tuple("in_proj_weight", Dims{24, 8}, 1),
                                           {"in_proj_bias", Dims{24}, 2},
                                           {"out_proj.weight", Dims{8, 8}, 3},
                                           {"out_proj.bias", Dims{8}, 4},
                                           {"query", Dims{2, 5, 8}, 5}}) {
      Tensor half = halves(varied(dims, seed));
      Tensor whole(DataType::kF32, dims);
      std::transform(half.data<BFloat16>(), half.data<BFloat16>() + half.count(), whole.data<float>(),
                     [](BFloat16 x) { return widen(x); });
      f32.emplace(name, std::move(whole));
      bf16.emplace(name, std::move(half));
    }
  }
  /// All weights as `w`, the query as `in`; those named in `other` in the other type.
  void save_as(const CommandFolder& folder, bool in_bf16, const std::vector<std::string>& other = {}) const {
    std::map<std::string, const Tensor*> weights, input;
    for (const auto& [name, whole] : f32) {
      const bool half = in_bf16 != (std::count(other.begin(), other.end(), name) > 0);
      (name == "query" ? input : weights).emplace(name, half ? &bf16.at(name) : &whole);
    }
    save(folder, "w", weights);
    save(folder, "in", input);
  }
  std::map<std::string, Tensor> f32, bf16;
};

constexpr const char* kLine = "attend --weights w --input in --heads 2 --threads 1 ";

TEST(AttendBf16, WritesBf16OutputAndF32Weights) {
  const CommandFolder folder;
  const Bf16Layer layer;
  layer.save_as(folder, false);
  ASSERT_EQ(folder.run(std::string(kLine) + "--out exact").exit_code, 0);
  layer.save_as(folder, true);
  const CommandResult result = folder.run(std::string(kLine) + "--out out --check exact");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_NE(result.out.find("output bf16 [2, 5, 8]"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("(2^-6"), std::string::npos) << "the bound is said: " << result.out;
  const std::vector<float> got = load_halves(folder, "out", "output"), exact = load(folder, "exact", "output");
  const std::vector<float> weights = load(folder, "out", "weights"), exact_weights = load(folder, "exact", "weights");
  ASSERT_EQ(got.size(), exact.size());
  ASSERT_EQ(weights.size(), exact_weights.size());
  double rounded = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], exact[i], 1.0 / 64 * 10);
    rounded = std::max(rounded, std::abs(static_cast<double>(got[i]) - exact[i]));
  }
  EXPECT_GT(rounded, 0) << "computed as f32";
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], exact_weights[i], 1.0 / 64);
}

TEST(AttendBf16, CheckFailsBeyondTheBound) {
  const CommandFolder folder;
  const Bf16Layer layer;
  layer.save_as(folder, true);
  ASSERT_EQ(folder.run(std::string(kLine) + "--out out --no-weights").exit_code, 0);
  // Its own output, as bf16, is right to the bit; shifted by more than 2^-6 of 10 it is not.
  EXPECT_EQ(folder.run(std::string(kLine) + "--check out --output-bound 0 --no-weights").exit_code, 0);
  Tensor wrong = floats({2, 5, 8}, load_halves(folder, "out", "output"));
  wrong.data<float>()[7] += 0.5f;
  save(folder, "wrong", {{"output", &wrong}});
  const CommandResult result = folder.run(std::string(kLine) + "--check wrong --no-weights");
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("EXCEEDED"), std::string::npos) << result.out;
}

TEST(AttendBf16, TypesAreNotMixed) {
  const CommandFolder folder;
  const Bf16Layer layer;
  layer.save_as(folder, true, {"query"});
  expect_refused(folder, kLine, "query is f32, expected bf16 as the weights are");
  layer.save_as(folder, false, {"query"});
  expect_refused(folder, kLine, "query is bf16, expected f32 as the weights are");
  layer.save_as(folder, true, {"out_proj.bias"});
  expect_refused(folder, kLine, "out_proj.bias is f32, expected bf16 as in_proj_weight is");
  layer.save_as(folder, false, {"out_proj.weight"});
  expect_refused(folder, kLine, "out_proj.weight is bf16, expected f32 as in_proj_weight is");
}

TEST(AttendBf16, CoreAlone) {
  const CommandFolder folder;
  const Tensor zeros = halves(floats({1, 1, 3, 2}, {0, 0, 0, 0, 0, 0}));
  const Tensor value = halves(floats({1, 1, 3, 2}, {1, 10, 2, 20, 3, 30}));
  const Tensor mask = bools({3, 3}, {1, 0, 0, 1, 0, 1, 0, 0, 0}), whole = varied({1, 1, 3, 2}, 1);
  save(folder, "in", {{"query", &zeros}, {"key", &zeros}, {"value", &value}, {"attn_mask", &mask}});
  ASSERT_EQ(folder.run("attend --input in --out out").exit_code, 0);
  EXPECT_EQ(load_halves(folder, "out", "output"), (std::vector<float>{1, 10, 2, 20, 0, 0}));
  EXPECT_EQ(load(folder, "out", "weights"), (std::vector<float>{1, 0, 0, 0.5f, 0, 0.5f, 0, 0, 0}));
  save(folder, "in", {{"query", &zeros}, {"key", &zeros}, {"value", &whole}});
  expect_refused(folder, "attend --input in", "value is f32, expected bf16 as query is");
}

}  // namespace
}  // namespace headway
