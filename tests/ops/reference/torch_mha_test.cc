// Cases of torch.nn.MultiheadAttention, computed by torch in double: the reference layer must agree to the rounding of
// the file, the fast layer to a few f32 roundings.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "ops/reference/reference_mha.h"
#include "tests/support/paths.h"
#include "tests/support/torch_cases.h"

namespace headway::testing {
namespace {

/// The file is f32: half a unit in the last place. Two float masks are added in f32 here, in f64 there.
constexpr double kStored = 2e-7;
/// torch's own f32 is up to 5.4e-6 from its f64 on these cases; |x| is of the order of one.
constexpr double kLayerTolerance = 1e-5;

ConstTensorView rank1(const ConstTensorView& view) { return view ? view.reshaped(Dims{view.count()}) : view; }

/// [S, E], [B, S, E] or [S, B, E] as [B, S, E].
template <class View>
View batch_first(const nlohmann::json& config, const View& view) {
  if (!config["batched"].get<bool>()) return view.reshaped(Dims{1, view.dims[0], view.dims[1]});
  return config["batch_first"].get<bool>() ? view : view.permuted({1, 0, 2});
}

MultiHeadAttentionWeights make_weights(const TorchCase& tensors) {
  MultiHeadAttentionWeights weights;
  const ConstTensorView packed = tensors.tensor("in_proj_weight");
  const ConstTensorView bias = tensors.tensor("in_proj_bias");
  if (packed) {
    split_in_proj(packed, bias, &weights);
  } else {
    weights.query = tensors.tensor("q_proj_weight");
    weights.key = tensors.tensor("k_proj_weight");
    weights.value = tensors.tensor("v_proj_weight");
    if (bias) {
      const std::int64_t embed = bias.count() / 3;
      weights.query_bias = bias.sliced(0, 0, embed);
      weights.key_bias = bias.sliced(0, embed, 2 * embed);
      weights.value_bias = bias.sliced(0, 2 * embed, 3 * embed);
    }
  }
  weights.output = tensors.tensor("out_proj.weight");
  weights.output_bias = tensors.tensor("out_proj.bias");
  weights.bias_k = rank1(tensors.tensor("bias_k"));
  weights.bias_v = rank1(tensors.tensor("bias_v"));
  return weights;
}

MaskKind kind_of(const ConstTensorView& mask) {
  if (!mask) return MaskKind::kNone;
  return mask.type == DataType::kBool ? MaskKind::kBool : MaskKind::kAdditive;
}

struct Layer {
  MultiHeadAttentionSpec spec;
  MultiHeadAttentionWeights weights;
  MultiHeadAttentionArgs args;
};

Layer make_layer(const nlohmann::json& config, const TorchCase& tensors) {
  Layer layer;
  layer.weights = make_weights(tensors);
  const auto input = [&](const char* name, const ConstTensorView& otherwise) {
    return tensors.has(name) ? batch_first(config, tensors.tensor(name)) : otherwise;
  };
  MultiHeadAttentionArgs& args = layer.args;
  args.query = input("query", {});
  args.key = input("key", args.query);
  // The value may be the key's tensor or the query's.
  args.value = input("value", config.value("value", "") == "key" ? args.key : args.query);

  MultiHeadAttentionSpec& spec = layer.spec;
  spec.batch = args.query.dims[0];
  spec.query_len = args.query.dims[1];
  spec.key_len = args.key.dims[1];
  spec.embed_dim = args.query.dims[2];
  spec.kdim = args.key.dims[2];
  spec.vdim = args.value.dims[2];
  spec.num_heads = config["num_heads"].get<std::int64_t>();
  spec.add_zero_attention = config["add_zero_attn"].get<bool>();
  apply_semantics("torch_mha", false, &spec.attention);  // a causal layer is given its mask

  args.key_mask = tensors.tensor("key_padding_mask");
  if (args.key_mask) args.key_mask = args.key_mask.reshaped(Dims{spec.batch, spec.key_len});
  args.mask = tensors.tensor("attn_mask");
  if (args.mask.rank() == 3) {  // [B·H, Sq, Skv]
    args.mask = args.mask.reshaped(Dims{spec.batch, spec.num_heads, spec.query_len, spec.key_len});
  }
  spec.attention.key_mask = kind_of(args.key_mask);
  spec.attention.mask = kind_of(args.mask);
  if (config["need_weights"].get<bool>()) {
    spec.attention.empty_row = EmptyRow::kNan;  // what torch gives then
    spec.attention.scores_output =
        config["average_attn_weights"].get<bool>() ? ScoresOutput::kMeanProbabilities : ScoresOutput::kProbabilities;
  }
  return layer;
}

/// Dims of the scores of a layer.
Dims score_dims(const Layer& layer) {
  const std::int64_t keys =
      layer.spec.key_len + (layer.weights.bias_k ? 1 : 0) + (layer.spec.add_zero_attention ? 1 : 0);
  if (layer.spec.attention.scores_output == ScoresOutput::kMeanProbabilities) {
    return {layer.spec.batch, layer.spec.query_len, keys};
  }
  return {layer.spec.batch, layer.spec.num_heads, layer.spec.query_len, keys};
}

/// Runs with outputs of type `Real` laid out as torch's are; returns the worse of the two differences to them.
template <class Real, class Run>
double difference(const nlohmann::json& config, const TorchCase& tensors, Layer layer, Run run) {
  const ConstTensorView expected = tensors.tensor("output");
  std::vector<Real> out(static_cast<std::size_t>(expected.count()) + 1);
  layer.args.out = batch_first(config, view_of(out.data(), expected.dims));
  const Dims dims = score_dims(layer);
  std::vector<Real> scores(static_cast<std::size_t>(element_count(dims)) + 1);
  const bool asked = layer.spec.attention.scores_output != ScoresOutput::kNone;
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
    const Layer layer = make_layer(config, tensors);

    const double exact = difference<double>(
        config, tensors, layer, [](const Layer& l) { reference_multi_head_attention(l.spec, l.weights, l.args); });
    EXPECT_LE(exact, kStored) << "case " << id;
    worst_exact = std::max(worst_exact, exact);
    for (const std::string& implementation : attention_implementations()) {
      if (!refusal({implementation, ""}, layer.spec.attention).empty()) continue;
      const double fast = difference<float>(config, tensors, layer, [&](const Layer& l) {
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
