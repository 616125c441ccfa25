// Whole models with inputs and expected outputs, listed in a manifest: every set of every file, fused and unfused.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "tools/conformance/compare_values.h"
#include "tools/conformance/conformance.h"
#include "tools/model/model.h"
#include "tools/model/model_files.h"

namespace headway::tools {
namespace {

using nlohmann::json;

constexpr double kModelBound = 1e-4;  // of expected outputs
constexpr double kFusedBound = 1e-5;  // between fused and unfused

/// One file of the manifest, read when the first of its sets runs.
class ModelPair {
 public:
  explicit ModelPair(std::string path) : path_(std::move(path)) {}
  const Model& fused() { return get(&fused_, true); }
  const Model& unfused() { return get(&unfused_, false); }

 private:
  const Model& get(std::unique_ptr<Model>* model, bool fused) {
    if (!*model) *model = std::make_unique<Model>(load_model(path_, {.fused = fused}));
    return **model;
  }
  std::string path_;
  std::unique_ptr<Model> fused_;
  std::unique_ptr<Model> unfused_;
};

struct ModelSet {
  std::string inputs;
  std::string expected;
  bool live_rows_only;  ///< rows of padded tokens have no expectation
  std::int64_t layers;  ///< attention that the file has
};

CaseResult run_set(ModelPair* pair, const ModelSet& set, const Execution& execution) {
  const SafetensorsFile inputs = SafetensorsFile::open(set.inputs);
  const SafetensorsFile expected = SafetensorsFile::open(set.expected);
  const NamedTensors fused = run_on(pair->fused().session(), inputs, execution.threads);
  const NamedTensors unfused = run_on(pair->unfused().session(), inputs, execution.threads);
  const ConstTensorView mask =
      set.live_rows_only && inputs.has("attention_mask") ? inputs.tensor("attention_mask") : ConstTensorView();

  CaseResult result;
  result.bound = kModelBound;
  double apart = 0;  // fused from unfused, rows that see no key included
  for (const std::string& name : expected.names()) {
    const auto got = fused.find(name);
    require(got != fused.end(), printable(set.expected), " has ", expected.names().size(), " tensors, the model ",
            fused.size(), " outputs: none of them is ", quoted(name));
    const ValueComparison comparison = compare_live_rows(name, got->second.view(), expected.tensor(name), mask);
    result.worst = std::max(result.worst, comparison.relative());
    apart = std::max(apart, compare_values(name, got->second.view(), unfused.at(name).view()).relative());
  }
  const FusionReport& report = pair->fused().fusion();
  const std::int64_t count = report.count("attention") + static_cast<std::int64_t>(report.native.size());
  result.ok = result.worst <= kModelBound && apart <= kFusedBound && count == set.layers;
  result.implementation = fmt::format("attention {} of {}, fused - unfused {:.2e}", count, set.layers, apart);
  for (const MissedAttention& miss : report.missed)
    result.implementation += fmt::format("; {}: {}", miss.node, miss.edge);
  return result;
}

}  // namespace

CaseSet model_cases(const std::string& folder, const json& manifest) {
  CaseSet cases;
  cases.rule = fmt::format(
      "error <= {:.0e} * largest |expected| of each output, {:.0e} between fused and unfused, every attention fused",
      kModelBound, kFusedBound);
  for (const json& file : manifest.at("files")) {
    if (!file.contains("sets")) continue;  // the exporter refused
    const std::string name = file.at("file").get<std::string>();
    const std::string stem = folder + "/" + name.substr(0, name.rfind(".onnx"));
    const auto pair = std::make_shared<ModelPair>(folder + "/" + name);
    std::int64_t layers = 0;
    for (const char* const kind : {"softmax_nodes", "attention_nodes"}) {
      constexpr std::int64_t kMaxNodes = 1 << 20;
      const auto nodes = file.value(kind, std::int64_t{0});
      require(nodes >= 0 && nodes <= kMaxNodes, name, " has ", kind, " of ", nodes, ", expected 0 to ", kMaxNodes);
      layers += nodes;
    }
    int number = 0;
    for (const json& set : file.at("sets")) {
      ++number;
      const std::string suffix = (number == 1 ? "" : std::to_string(number)) + ".safetensors";
      const bool live_only = !set.value("padded_rows_agree_with_torch", true);
      const ModelSet one{stem + ".inputs" + suffix, stem + ".expected" + suffix, live_only, layers};
      cases.cases.push_back({fmt::format("{} set {}", name, number), live_only ? "live rows" : "all rows",
                             [pair, one](const Execution& execution) { return run_set(pair.get(), one, execution); }});
    }
  }
  return cases;
}

}  // namespace headway::tools
