// headway conformance: runs a folder of cases and says which hold.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "runtime/base/check.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/conformance/conformance.h"

namespace headway::tools {
namespace {

struct ConformanceOptions {
  std::string folder;
  ExecutionOptions execution;
};

struct Tally {
  int passed = 0;
  int failed = 0;
  int refused = 0;
  int unsupported = 0;
  int unreadable = 0;
  std::int64_t empty_rows_nan = 0;
};

void run_case(const Case& one, const Execution& execution, Tally* tally) {
  try {
    const CaseResult result = one.run(execution);
    if (!result.unsupported.empty()) {
      tally->unsupported++;
      print("{}  {}  unsupported: {}\n", one.id, one.description, result.unsupported);
      return;
    }
    (result.ok ? tally->passed : tally->failed)++;
    tally->empty_rows_nan += result.empty_rows_nan;
    const std::string empty =
        result.empty_rows_nan ? fmt::format(" ({} empty rows: NaN in torch)", result.empty_rows_nan) : "";
    print("{}  {}  worst {:.2e}  bound {:.2e}  {}  {}{}\n", one.id, one.description, result.worst, result.bound,
          result.implementation, result.ok ? "ok" : "FAIL", empty);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo) {
      tally->unreadable++;
      print("{}  {}  not run: {}\n", one.id, one.description, error.what());
      return;
    }
    // A forced implementation may say no; nothing else may.
    const bool refused = execution.forced && error.code() == ErrorCode::kUnsupported;
    (refused ? tally->refused : tally->failed)++;
    print("{}  {}  {}: {}\n", one.id, one.description, refused ? "refused" : "FAIL", error.what());
  }
}

int run(const ConformanceOptions& options) {
  const Execution execution = start(options.execution);
  const CaseSet set = load_cases(options.folder);
  print("bound: {}\n", set.rule);
  Tally tally;
  for (const Case& one : set.cases) {
    if (output_failed()) break;  // nobody reads what would be said
    run_case(one, execution, &tally);
  }
  if (tally.empty_rows_nan) {
    print("{} rows of outputs and weights are NaN in torch, since some head sees no key there: 0 by rule here\n",
          tally.empty_rows_nan);
  }
  if (tally.refused) print("{} refused by the forced implementation\n", tally.refused);
  if (tally.unsupported) print("{} unsupported\n", tally.unsupported);
  print("{} passed, {} failed\n", tally.passed, tally.failed);
  if (tally.unreadable) {
    fail(ErrorCode::kIo, "files of ", tally.unreadable, " of ", set.cases.size(), " cases could not be read");
  }
  // A run that checked nothing is no success.
  return tally.failed == 0 && tally.passed > 0 ? kExitGood : kExitCheckFailed;
}

}  // namespace

void add_conformance(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<ConformanceOptions>();
  CLI::App* command = app->add_subcommand("conformance", "Run a folder of cases with expected results");
  command
      ->add_option("folder", options->folder,
                   "A folder with configs.json (cases of torch.nn.MultiheadAttention or "
                   "scaled_dot_product_attention), with manifest.json (one layer of a model, or ONNX models with "
                   "inputs and outputs), or with folders test_* of ONNX's backend suite")
      ->required();
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
