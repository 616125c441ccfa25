// Finding the cases of a folder and judging results. See conformance.h.
#include "tools/conformance/conformance.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/printable.h"

namespace headway::tools {
namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    fail(ErrorCode::kInvalidArgument, printable(path), ": not JSON: ", error.what());
  }
}

std::vector<Case> config_cases(const std::string& folder, const std::string& path) {
  const json root = read_json(path);
  require(root.is_object() && root.contains("configs") && root["configs"].is_array(), path,
          ": has no list named configs");
  CaseFiles files(folder);
  std::vector<Case> cases;
  for (const json& config : root["configs"]) {
    const std::string file =
        config.contains("file") ? config["file"].get<std::string>() : root.at("file").get<std::string>();
    const CaseTensors tensors(files.open(file), config);
    require(config.contains("embed_dim") || config.contains("query"), path, ": case ", tensors.prefix(),
            " has neither embed_dim nor query, so it is of no known layout");
    cases.push_back(config.contains("embed_dim") ? mha_case(tensors, config) : sdpa_case(tensors, config));
  }
  return cases;
}

void judge_tensor(const Comparison& comparison, CaseResult* result) {
  const double bound = kConformanceBound * std::max(1.0, comparison.largest_expected);
  const bool first = result->bound == 0;
  // The tensor that comes closest to its bound speaks for the case.
  if (first || comparison.worst / bound > result->worst / result->bound) {
    result->worst = comparison.worst;
    result->bound = bound;
  }
  result->ok = result->ok && comparison.worst <= bound;
  result->empty_rows_nan += comparison.empty_rows_nan;
}

}  // namespace

const SafetensorsFile& CaseFiles::open(const std::string& file) {
  std::unique_ptr<SafetensorsFile>& slot = files_[file];
  if (!slot) slot = std::make_unique<SafetensorsFile>(SafetensorsFile::open(folder_ + "/" + file));
  return *slot;
}

CaseTensors::CaseTensors(const SafetensorsFile& file, const json& config)
    : file_(file), config_(config), prefix_(fmt::format("{:03}.", config.at("id").get<int>())) {}

ConstTensorView CaseTensors::required(const std::string& name) const {
  std::string actual = name;
  // "value": "key" and "key": "query": follow at most as many steps as there are such names.
  for (int i = 0; i < 3 && config_.contains(actual) && config_[actual].is_string(); ++i) {
    actual = config_[actual].get<std::string>();
  }
  return file_.tensor(prefix_ + actual);
}

ConstTensorView CaseTensors::optional(const std::string& name) const {
  return has(name) ? required(name) : ConstTensorView();
}

CaseResult judge(const CallResult& got, const ConstTensorView& output, const ConstTensorView& weights) {
  CaseResult result;
  result.implementation = got.implementation;
  judge_tensor(compare({"output", got.output.view(), output, got.output_rows, got.empty_output}), &result);
  if (weights) judge_tensor(compare({"weights", got.weights.view(), weights, got.weights_rows, {}}), &result);
  return result;
}

CaseSet load_cases(const std::string& folder) {
  const std::string configs = folder + "/configs.json", manifest_path = folder + "/manifest.json";
  require(std::filesystem::is_directory(folder), folder, ": not a folder");
  const std::string rule = fmt::format(
      "|got - expected| <= {:.0e} * max(1, largest |expected|), every element; NaN never passes", kConformanceBound);
  try {
    if (std::filesystem::exists(configs)) return {rule, config_cases(folder, configs)};
    if (std::filesystem::exists(manifest_path)) {
      const json manifest = read_json(manifest_path);
      if (manifest.contains("files")) return model_cases(folder, manifest);
      if (manifest.value("file", "").ends_with(".onnx")) return encoder_cases(folder, manifest);
      return {rule, layer_cases(folder, manifest)};
    }
    CaseSet backend = backend_cases(folder);
    if (!backend.cases.empty()) return backend;
  } catch (const json::exception& error) {
    fail(ErrorCode::kInvalidArgument, folder, ": ", error.what());
  }
  fail(ErrorCode::kInvalidArgument, folder,
       ": has neither configs.json nor manifest.json nor test_*/model.onnx, expected one of them");
}

}  // namespace headway::tools
