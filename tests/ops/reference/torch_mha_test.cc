// Cases of torch.nn.MultiheadAttention, computed by torch in double: the reference layer must agree to the rounding of
// the file, the fast layer to a few f32 roundings.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "ops/multi_head_attention/mha_spec.h"
#include "ops/reference/reference_mha.h"
#include "tests/ops/multi_head_attention/torch_layer.h"
#include "tests/support/paths.h"
#include "tests/support/torch_cases.h"

namespace headway::testing {
namespace {

/// The file is f32: half a unit in the last place. Two float masks are added in f32 here, in f64 there.
constexpr double kStored = 2e-7;
/// torch's own f32 is up to 5.4e-6 from its f64 on these cases; |x| is of the order of one.
constexpr double kLayerTolerance = 1e-5;

/// Runs with outputs of type `Real` laid out as torch's are; returns the worse of the two differences to them.
template <class Real, class Run>
double difference(const nlohmann::json& config, const TorchCase& tensors, TorchLayer layer, Run run) {
  const ConstTensorView expected = tensors.tensor("output");
  std::vector<Real> out(static_cast<std::size_t>(expected.count()) + 1);
  layer.args.out = batch_first(config, view_of(out.data(), expected.dims));
  const Dims dims = score_dims(layer);
  std::vector<Real> scores(static_cast<std::size_t>(element_count(dims)) + 1);
  const bool asked = layer.spec.scores_output != ScoresOutput::kNone;
  if (asked) layer.args.scores = view_of(scores.data(), dims);
  run(layer);
  const double of_out = worst_difference(view_of(out.data(), expected.dims), expected);
  const double of_scores = asked ? worst_difference(layer.args.scores, tensors.tensor("weights")) : 0;
  return std::max(of_out, of_scores);
}

int run_folder(const std::filesystem::path& folder) {
  const nlohmann::json manifest = read_json(folder / "configs.json");
  std::map<std::string, SafetensorsFile> files;
  double worst_exact = 0;
  double worst_fast = 0;
  int cases = 0;
  for (const nlohmann::json& config : manifest["configs"]) {
    const auto name = config["file"].get<std::string>();
    const auto file = files.try_emplace(name, SafetensorsFile::open(folder / name)).first;
    const int id = config["id"].get<int>();
    const TorchCase tensors(file->second, id);
    const TorchLayer layer = make_torch_layer(config, tensors);

    const double exact = difference<double>(
        config, tensors, layer, [](const TorchLayer& l) { reference_multi_head_attention(l.spec, l.weights, l.args); });
    EXPECT_LE(exact, kStored) << "case " << id;
    worst_exact = std::max(worst_exact, exact);
    const AttentionSpec core = core_spec(complete_spec(layer.spec), static_cast<bool>(layer.weights.bias_k));
    for (const std::string& implementation : attention_implementations()) {
      if (!refusal({implementation, ""}, core).empty()) continue;
      const double fast = difference<float>(config, tensors, layer, [&](const TorchLayer& l) {
        const MultiHeadAttention mha(l.spec, l.weights, {implementation});
        const AlignedBuffer workspace(mha.workspace_bytes(1));
        mha.run(l.args, workspace.data(), Threads::serial());
      });
      EXPECT_LE(fast, kLayerTolerance) << "case " << id << " " << implementation << " " << config.dump();
      worst_fast = std::max(worst_fast, fast);
    }
    ++cases;
  }
  std::cout << cases << " cases; reference to torch: " << worst_exact << ", layer to torch: " << worst_fast
            << " at worst\n";
  return cases;
}

TEST(TorchMha, EveryCaseAgrees) {
  const auto folders = case_folders("mha_torch");
  if (folders.empty()) GTEST_SKIP() << "no folder mha_torch in tests/fixtures or beside the checkout";
  for (const auto& folder : folders) EXPECT_GT(run_folder(folder), 10) << folder;
}

}  // namespace
}  // namespace headway::testing
