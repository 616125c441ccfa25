// A folder of cases with expected results, and what running one gives. One loader per layout; none knows the others.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/command/execution.h"
#include "tools/conformance/compare.h"

namespace headway::tools {

/// |got − expected| ≤ kConformanceBound · max(1, largest |expected|), element by element.
inline constexpr double kConformanceBound = 1e-5;

struct CaseResult {
  double worst = 0;  ///< largest error over all tensors of the case
  double bound = 0;  ///< of the tensor with the worst ratio of error to bound
  bool ok = true;
  std::string unsupported;  ///< why this library does not run such a case; empty: it does
  std::int64_t empty_rows_nan = 0;
  std::string implementation;
};

struct Case {
  std::string id;
  std::string description;
  std::function<CaseResult(const Execution&)> run;
};

/// Judges the output and, where there are any, the weights of one call.
CaseResult judge(const CallResult& got, const ConstTensorView& output, const ConstTensorView& weights);

struct CaseSet {
  std::string rule;  ///< what a case must hold, for the head of the report
  std::vector<Case> cases;
};

/// All cases of a folder: a configs.json with cases of torch's MHA or SDPA; a manifest.json with one layer, with models
/// or with a sentence encoder; or folders test_… of ONNX's backend suite. Throws kInvalidArgument when it is none.
CaseSet load_cases(const std::string& folder);

/// Opens each file of a folder once and finds a case's tensors in it, by "NNN.<name>".
class CaseFiles {
 public:
  explicit CaseFiles(std::string folder) : folder_(std::move(folder)) {}
  const SafetensorsFile& open(const std::string& file);

 private:
  std::string folder_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
};

/// The tensors of one case; a string in its config under a tensor's name says which other tensor is meant.
class CaseTensors {
 public:
  CaseTensors(const SafetensorsFile& file, const nlohmann::json& config);
  bool has(const std::string& name) const { return file_.has(prefix_ + name); }
  ConstTensorView required(const std::string& name) const;
  ConstTensorView optional(const std::string& name) const;
  const std::string& prefix() const { return prefix_; }
  const SafetensorsFile& file() const { return file_; }

 private:
  SafetensorsFile file_;
  nlohmann::json config_;
  std::string prefix_;
};

Case mha_case(const CaseTensors& tensors, const nlohmann::json& config);
Case sdpa_case(const CaseTensors& tensors, const nlohmann::json& config);
std::vector<Case> layer_cases(const std::string& folder, const nlohmann::json& manifest);
/// Empty when the folder has no test_…/model.onnx.
CaseSet backend_cases(const std::string& folder);
CaseSet model_cases(const std::string& folder, const nlohmann::json& manifest);
CaseSet encoder_cases(const std::string& folder, const nlohmann::json& manifest);

}  // namespace headway::tools
