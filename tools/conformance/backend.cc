// ONNX's backend suite: folders test_<name> with a model, its inputs and its outputs. Judged by the suite's own rule.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/check.h"
#include "tools/conformance/compare_values.h"
#include "tools/conformance/conformance.h"
#include "tools/conformance/per_op_rounding.h"
#include "tools/model/model.h"

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

// The defaults of onnx.backend.test.
constexpr ValueBound kBound{1e-3, 1e-7};

std::vector<fs::path> entries(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// input_0.pb, input_1.pb, …
std::vector<Tensor> read_tensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_onnx_tensor(path.string()).tensor);
  }
}

std::vector<ConstTensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<ConstTensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

void run_set(const Session& session, const fs::path& data, const Threads& threads, CaseResult* result) {
  const std::vector<Tensor> inputs = read_tensors(data, "input");
  const std::vector<Tensor> expected = read_tensors(data, "output");
  const std::vector<Tensor> outputs = session.run(views_of(inputs), threads);
  require(!expected.empty() && outputs.size() == expected.size(), "model has ", outputs.size(), " outputs, ",
          data.filename().string(), " has ", expected.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.graph().outputs()[i].name;
    const ValueComparison comparison =
        compare_values("output '" + name + "'", outputs[i].view(), expected[i].view(), kBound);
    result->worst = std::max(result->worst, comparison.worst_over_bound);
    result->ok = result->ok && comparison.worst_over_bound <= 1;
  }
}

CaseResult run_case(const fs::path& folder, const Execution& execution) {
  CaseResult result;
  result.bound = 1;
  const std::string path = (folder / "model.onnx").string();
  OnnxModel onnx;
  try {
    onnx = read_onnx(path);
  } catch (const Error& error) {
    // Sequences and the like are for another runtime; operators that are missing are faults and come up below.
    if (error.code() != ErrorCode::kUnsupported) throw;
    result.unsupported = error.what();
    return result;
  }
  onnx.graph = with_per_op_rounding(onnx.graph);
  const Model model = make_model(std::move(onnx));
  const std::vector<fs::path> sets = entries(folder, "test_data_set_");
  require(!sets.empty(), folder.string(), " has no test_data_set_*");
  for (const fs::path& data : sets) run_set(model.session(), data, execution.threads, &result);
  std::string operators;
  for (const Node& node : model.session().graph().nodes()) {
    if (node.op.find("Attention") == std::string::npos) continue;
    operators += (operators.empty() ? "" : ", ") + node.op;
  }
  result.implementation = operators;
  return result;
}

}  // namespace

CaseSet backend_cases(const std::string& folder) {
  CaseSet set;
  set.rule = fmt::format(
      "error <= {:.0e} + {:.0e} * |expected|, every element (worst is the largest error over that); NaN equals NaN",
      kBound.absolute, kBound.relative);
  for (const fs::path& path : entries(folder, "test_")) {
    if (!fs::exists(path / "model.onnx")) continue;
    set.cases.push_back(
        {path.filename().string(), "onnx", [path](const Execution& execution) { return run_case(path, execution); }});
  }
  return set;
}

}  // namespace headway::tools
