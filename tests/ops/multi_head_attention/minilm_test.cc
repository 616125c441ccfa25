// A layer of a published model, all-MiniLM-L6-v2, with what torch computed for it in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "headway/multi_head_attention.h"
#include "headway/safetensors.h"
#include "headway_test_paths.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "tests/support/paths.h"

namespace headway::testing {
namespace {

const std::string kFolder = HEADWAY_SOURCE_DIR "/tests/fixtures/minilm_layer0";

/// Values are of the order of one; torch's own f32 result is 1.3e-6 off, its weights 2e-6.
constexpr double kTolerance = 4e-6;

double worst_difference(const TensorView& got, const ConstTensorView& expected) {
  double worst = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double difference = std::abs(double{got.as<float>()[i]} - double{expected.as<float>()[i]});
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
  }
  return worst;
}

TEST(MiniLmLayer, MatchesTorch) {
  const SafetensorsFile weight_file = SafetensorsFile::open(kFolder + "/weights.safetensors");
  const SafetensorsFile input = SafetensorsFile::open(kFolder + "/input.safetensors");
  const SafetensorsFile expected = SafetensorsFile::open(kFolder + "/expected.safetensors");
  MultiHeadAttentionWeights weights;
  split_in_proj(weight_file.tensor("in_proj_weight"), weight_file.tensor("in_proj_bias"), &weights);
  weights.output = weight_file.tensor("out_proj.weight");
  weights.output_bias = weight_file.tensor("out_proj.bias");

  const ConstTensorView query = input.tensor("query");  // [B, S, E]
  MultiHeadAttentionSpec spec;
  spec.batch = query.dims[0];
  spec.query_len = query.dims[1];
  spec.embed_dim = query.dims[2];
  spec.num_heads = 12;
  spec.self_attention = true;
  apply_semantics("torch_mha", false, &spec);
  spec.key_mask = MaskKind::kBool;
  spec.scores_output = ScoresOutput::kProbabilities;
  for (const std::string& implementation : attention_implementations()) {
    if (!refusal({implementation, ""}, core_spec(complete_spec(spec), false)).empty()) continue;
    const MultiHeadAttention mha(spec, weights, {.implementation = implementation});
    const AlignedBuffer workspace(mha.workspace_bytes(2));
    Tensor out(DataType::kF32, query.dims);
    Tensor scores(DataType::kF32, expected.tensor("weights").dims);
    MultiHeadAttentionArgs args;
    args.query = query;
    args.key_mask = input.tensor("key_padding_mask");
    args.out = out.view();
    args.scores = scores.view();
    mha.run(args, workspace.data(), Threads::openmp(2));
    const double out_error = worst_difference(out.view(), expected.tensor("output"));
    const double scores_error = worst_difference(scores.view(), expected.tensor("weights"));
    EXPECT_LT(out_error, kTolerance) << implementation;
    EXPECT_LT(scores_error, kTolerance) << implementation;
    std::cout << implementation << ": output " << out_error << ", weights " << scores_error << " from torch in f64\n";
  }
}

}  // namespace
}  // namespace headway::testing
