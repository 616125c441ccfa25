// A sentence encoder with tokens and embeddings: one case a sentence, pooled here from the hidden states; and the
// batch.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/base/check.h"
#include "tools/conformance/compare_values.h"
#include "tools/conformance/conformance.h"
#include "tools/model/model.h"
#include "tools/model/model_files.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

constexpr double kCosineBound = 1e-5;  // of 1 − cosine
constexpr double kSingleBound = 1e-5;  // between a sentence alone and in the padded batch
constexpr double kHiddenBound = 1e-4;  // relative to the largest entry

const char* const kHidden = "last_hidden_state";
const char* const kEmbedding = "sentence_embedding";
const char* const kMask = "attention_mask";

struct Encoder {
  Model model;
  SafetensorsFile inputs;
  SafetensorsFile expected;
};

/// Mean of the live rows of one sentence [S, E], scaled to length 1.
std::vector<double> pooled(const ConstTensorView& hidden, const ConstTensorView& mask) {
  require(hidden.rank() == 2 && mask.rank() == 1 && mask.dims[0] == hidden.dims[0], kHidden, " of a sentence is ",
          hidden.dims, " with a mask ", mask.dims, ", expected [tokens, width] and [tokens]");
  const std::vector<double> rows = values_of(hidden);
  const std::vector<double> live = values_of(mask);
  std::vector<double> sum(static_cast<std::size_t>(hidden.dims[1]));
  for (std::size_t i = 0; i < rows.size(); ++i) sum[i % sum.size()] += rows[i] * live[i / sum.size()];
  double square = 0;
  for (double x : sum) square += x * x;
  for (double& x : sum) x /= std::sqrt(square);
  return sum;
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  require(a.size() == b.size(), kEmbedding, " has ", b.size(), " numbers, expected ", a.size());
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

/// The hidden states of sentence `i` run by itself, cut to its live tokens: [length, E].
Tensor run_alone(const Encoder& encoder, std::int64_t i, std::int64_t length, const Threads& threads) {
  const Graph& graph = encoder.model.session().graph();
  std::vector<ConstTensorView> views;
  for (const GraphInput& input : graph.inputs()) {
    views.push_back(encoder.inputs.tensor(graph.value_name(input.value)).sliced(0, i, i + 1).sliced(1, 0, length));
  }
  std::vector<Tensor> outputs = encoder.model.session().run(views, threads);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (graph.outputs()[k].name == kHidden) return packed(std::as_const(outputs[k]).view().selected(0, 0));
  }
  fail(ErrorCode::kInvalidArgument, "the model has no output named ", kHidden);
}

CaseResult run_sentence(const Encoder& encoder, std::int64_t i, const Execution& execution) {
  const NamedTensors batch = run_on(encoder.model.session(), encoder.inputs, execution.threads);
  require(batch.count(kHidden) == 1, "the model has no output named ", kHidden);
  const ConstTensorView mask = encoder.inputs.tensor(kMask).selected(0, i);
  const std::vector<double> live = values_of(mask);
  const auto length = std::count(live.begin(), live.end(), 1.0);
  const ConstTensorView hidden = batch.at(kHidden).view().selected(0, i);
  const std::vector<double> expected = values_of(encoder.expected.tensor(kEmbedding).selected(0, i));
  CaseResult result;
  result.bound = kCosineBound;
  result.worst = 1 - cosine(pooled(hidden, mask), expected);
  if (batch.count(kEmbedding)) {
    result.worst = std::max(result.worst, 1 - cosine(values_of(batch.at(kEmbedding).view().selected(0, i)), expected));
  }
  const Tensor alone = run_alone(encoder, i, length, execution.threads);
  const double apart = compare_values(kHidden, alone.view(), hidden.sliced(0, 0, length)).relative();
  result.ok = result.worst <= kCosineBound && apart <= kSingleBound;
  result.implementation = fmt::format("1 - cosine; alone - in the batch {:.2e}", apart);
  return result;
}

CaseResult run_batch(const Encoder& encoder, std::int64_t layers, const Execution& execution) {
  const NamedTensors batch = run_on(encoder.model.session(), encoder.inputs, execution.threads);
  CaseResult result;
  result.bound = kHiddenBound;
  for (const auto& [name, tensor] : batch) {
    result.worst =
        std::max(result.worst, compare_values(name, tensor.view(), encoder.expected.tensor(name)).relative());
  }
  const FusionReport& report = encoder.model.fusion();
  const std::int64_t fused = report.count("attention") + static_cast<std::int64_t>(report.native.size());
  result.ok = result.worst <= kHiddenBound && fused == layers;
  result.implementation = fmt::format("attention {} of {}", fused, layers);
  return result;
}

}  // namespace

CaseSet encoder_cases(const std::string& folder, const nlohmann::json& manifest) {
  const std::string file = manifest.at("file").get<std::string>();
  const std::string stem = folder + "/" + file.substr(0, file.rfind(".onnx"));
  const auto encoder = std::make_shared<const Encoder>(Encoder{load_model(folder + "/" + file),
                                                               SafetensorsFile::open(stem + ".inputs.safetensors"),
                                                               SafetensorsFile::open(stem + ".expected.safetensors")});
  CaseSet set;
  set.rule = fmt::format(
      "outputs within {:.0e} of the largest entry; per sentence 1 - cosine <= {:.0e}, alone and in the padded batch "
      "within {:.0e}",
      kHiddenBound, kCosineBound, kSingleBound);
  const std::int64_t layers = manifest.value("layers", std::int64_t{0});
  set.cases.push_back(
      {"batch", file, [encoder, layers](const Execution& e) { return run_batch(*encoder, layers, e); }});
  const ConstTensorView mask = encoder->inputs.tensor(kMask);
  require(mask.rank() == 2, kMask, " has rank ", mask.rank(), ", expected 2: [sentences, tokens]");
  const std::int64_t sentences = mask.dims[0];
  for (std::int64_t i = 0; i < sentences; ++i) {
    set.cases.push_back({fmt::format("sentence {:02}", i), file,
                         [encoder, i](const Execution& e) { return run_sentence(*encoder, i, e); }});
  }
  return set;
}

}  // namespace headway::tools
