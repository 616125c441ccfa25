// Configurations of torch.nn.MultiheadAttention with weights and inputs rounded to bf16: the layer in bf16 against the
// double reference on the same numbers, and the same bits at any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <iostream>
#include <limits>
#include <map>
#include <utility>

#include "headway/numerical_bound.h"
#include "ops/base/narrow.h"
#include "ops/base/numeric.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "ops/reference/reference_mha.h"
#include "tests/ops/multi_head_attention/bf16_bound.h"
#include "tests/ops/multi_head_attention/torch_layer.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

/// Two layers of the same numbers: bf16, and f32 for the reference.
struct Rounded {
  explicit Rounded(const TorchLayer& layer) : bf16(layer), f32(layer) {
    bf16.spec.type = DataType::kBF16;
    MultiHeadAttentionWeights &h = bf16.weights, &w = f32.weights;
    round(&h.query, &w.query), round(&h.key, &w.key), round(&h.value, &w.value), round(&h.output, &w.output);
    round(&h.query_bias, &w.query_bias), round(&h.key_bias, &w.key_bias), round(&h.value_bias, &w.value_bias);
    round(&h.output_bias, &w.output_bias), round(&h.bias_k, &w.bias_k), round(&h.bias_v, &w.bias_v);
    round(&bf16.args.query, &f32.args.query), round(&bf16.args.key, &f32.args.key);
    round(&bf16.args.value, &f32.args.value);
  }
  Rounded(const Rounded&) = delete;
  Rounded& operator=(const Rounded&) = delete;

  TorchLayer bf16, f32;

 private:
  void round(ConstTensorView* half, ConstTensorView* whole) {
    if (!*half) return;
    Tensor& narrow = memory_.emplace_back(DataType::kBF16, half->dims);
    convert_view(*whole, narrow.view());
    *half = std::as_const(narrow).view();
    Tensor& wide = memory_.emplace_back(DataType::kF32, half->dims);
    convert_view(*half, wide.view());
    *whole = std::as_const(wide).view();
  }
  std::deque<Tensor> memory_;
};

/// Outputs of one run, in row-major order of [B, Sq, E] and of the scores' dims.
template <class Real>
struct Outputs {
  explicit Outputs(const TorchLayer& layer)
      : out_dims{layer.spec.batch, layer.spec.query_len, layer.spec.embed_dim},
        scores_dims(score_dims(layer)),
        out(static_cast<std::size_t>(element_count(out_dims))),
        asked(layer.spec.scores_output != ScoresOutput::kNone) {}
  template <class Score>
  void attach(MultiHeadAttentionArgs* args, std::vector<Score>* scores) {
    args->out = view_of(out.data(), out_dims);
    if (!asked) return;
    scores->assign(static_cast<std::size_t>(element_count(scores_dims)), Score{});
    args->scores = view_of(scores->data(), scores_dims);
  }
  Dims out_dims, scores_dims;
  std::vector<Real> out;
  bool asked;
};

/// Largest element of the projected values, bias_v among them; what the bound is relative to.
double largest_value(const TorchLayer& layer) {
  double largest = 0;
  const ConstTensorView &x = layer.args.value, &w = layer.weights.value;
  for (std::int64_t row = 0; row < x.dims[0] * x.dims[1]; ++row) {
    const float* const input = x.as<float>() + row / x.dims[1] * x.strides[0] + row % x.dims[1] * x.strides[1];
    for (std::int64_t n = 0; n < w.dims[0]; ++n) {
      double sum = layer.weights.value_bias ? static_cast<double>(layer.weights.value_bias.as<float>()[n]) : 0.0;
      for (std::int64_t k = 0; k < w.dims[1]; ++k) {
        sum += static_cast<double>(input[k]) * static_cast<double>(w.as<float>()[n * w.dims[1] + k]);
      }
      largest = std::max(largest, std::abs(sum));
    }
  }
  for (std::int64_t n = 0; layer.weights.bias_v && n < w.dims[0]; ++n) {
    largest = std::max(largest, std::abs(static_cast<double>(layer.weights.bias_v.as<float>()[n])));
  }
  return largest;
}

double share_of_bound(double got, double exact, double bound) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  return std::isfinite(got) ? std::abs(got - exact) / bound : std::numeric_limits<double>::infinity();
}

struct Worst {
  double out = 0, scores = 0;  // ratios to the bounds
};

Worst compare(const TorchLayer& f32, const std::vector<BFloat16>& out, const std::vector<double>& exact_out,
              const std::vector<float>& scores, const std::vector<double>& exact_scores) {
  Worst worst;
  const ConstTensorView& w = f32.weights.output;
  const double value = largest_value(f32);
  std::vector<double> spread;
  for (std::int64_t e = 0; e < w.dims[0]; ++e) {
    double squares = 0;
    for (std::int64_t n = 0; n < w.dims[1]; ++n) {
      squares += std::pow(static_cast<double>(w.as<float>()[e * w.dims[1] + n]), 2);
    }
    spread.push_back(kBf16LayerBound * std::sqrt(squares) * value);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double bound = numerical_bound::kBf16Rounding * (std::abs(exact_out[i]) + spread[i % spread.size()]);
    worst.out = std::max(worst.out, share_of_bound(static_cast<double>(widen(out[i])), exact_out[i], bound));
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double bound = numerical_bound::kBf16Rounding * kBf16ScoreBound * (1 + std::abs(exact_scores[i]));
    worst.scores = std::max(worst.scores, share_of_bound(static_cast<double>(scores[i]), exact_scores[i], bound));
  }
  return worst;
}

int run_folder(const std::filesystem::path& folder) {
  const nlohmann::json manifest = read_json(folder / "configs.json");
  std::map<std::string, SafetensorsFile> files;
  Worst worst;
  int cases = 0;
  for (const nlohmann::json& config : manifest["configs"]) {
    const auto name = config["file"].get<std::string>();
    const auto file = files.try_emplace(name, SafetensorsFile::open(folder / name)).first;
    Rounded layer(make_torch_layer(config, TorchCase(file->second, config["id"].get<int>())));
    Outputs<double> exact(layer.f32);
    std::vector<double> exact_scores;
    exact.attach(&layer.f32.args, &exact_scores);
    reference_multi_head_attention(layer.f32.spec, layer.f32.weights, layer.f32.args);

    const AttentionSpec core = core_spec(complete_spec(layer.bf16.spec), static_cast<bool>(layer.bf16.weights.bias_k));
    for (const std::string& implementation : attention_implementations()) {
      if (!refusal({implementation, ""}, core).empty()) continue;
      const MultiHeadAttention mha(layer.bf16.spec, layer.bf16.weights, {implementation});
      std::vector<BFloat16> first;
      for (const int workers : {1, 2, 3, 8}) {
        Outputs<BFloat16> got(layer.bf16);
        std::vector<float> scores;
        got.attach(&layer.bf16.args, &scores);
        const AlignedBuffer workspace(mha.workspace_bytes(workers));
        mha.run(layer.bf16.args, workspace.data(), Threads::openmp(workers));
        if (workers == 1) {
          const Worst now = compare(layer.f32, got.out, exact.out, scores, exact_scores);
          EXPECT_LE(now.out, 1) << implementation << " " << config.dump();
          EXPECT_LE(now.scores, 1) << implementation << " " << config.dump();
          worst = {std::max(worst.out, now.out), std::max(worst.scores, now.scores)};
          first = got.out;
        } else {
          EXPECT_EQ(std::memcmp(got.out.data(), first.data(), first.size() * sizeof(BFloat16)), 0)
              << implementation << " on " << workers << " workers " << config.dump();
        }
      }
    }
    ++cases;
  }
  std::cout << cases << " cases; bf16 layer: output " << worst.out << ", scores " << worst.scores << " of the bounds\n";
  return cases;
}

TEST(TorchMhaBf16, EveryConfigurationAgreesWithDouble) {
  const auto folders = case_folders("mha_torch");
  if (folders.empty()) GTEST_SKIP() << "no folder mha_torch in tests/fixtures or beside the checkout";
  for (const auto& folder : folders) EXPECT_GT(run_folder(folder), 10) << folder;
}

}  // namespace
}  // namespace headway::testing
