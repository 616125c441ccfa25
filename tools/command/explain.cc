// headway explain: what is in a model and what will become of it, without running it.
#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <sstream>

#include "runtime/base/printable.h"
#include "tools/command/commands.h"
#include "tools/command/execution.h"
#include "tools/command/output.h"
#include "tools/model/model.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

struct ExplainOptions {
  std::string model_path;
  ModelInputOptions inputs;
  bool all_nodes = false;
  bool unfused = false;
  ExecutionOptions execution;
};

/// The paragraphs of attention and the lines that stand for no node.
std::string attention_only(const std::string& plan) {
  std::istringstream lines(plan);
  std::string out;
  bool shown = false;
  for (std::string line; std::getline(lines, line);) {
    const bool continues = line.starts_with("    ");
    if (!continues) {
      const std::string op = line.substr(0, line.find(' '));
      shown = op.find("Attention") != std::string::npos || op == "memory:";
    }
    if (shown) out += line + '\n';
  }
  return out;
}

/// "runs Attention 12 (tiled), onnx.Attention 2 (f16 widened to f32, tiled)": each attention operator of the plan with
/// how many nodes each implementation has. Empty when there is none.
std::string implementations(const std::string& plan) {
  std::map<std::string, std::map<std::string, int>> counts;
  std::istringstream lines(plan);
  std::string op;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("    ")) {
      op = line.substr(0, line.find(' '));
      continue;
    }
    if (op.find("Attention") == std::string::npos) continue;
    // The core explains itself as "name: details"; layers say "core " or "query, key, value: " in front.
    const std::string text = line.substr(4);
    const std::size_t colon = text.find(':');
    if (text.starts_with(' ') || text.starts_with("query, key") || colon == std::string::npos) continue;
    ++counts[op][text.substr(0, colon)];
    op.clear();
  }
  std::string out;
  for (const auto& [one, names] : counts) {
    int total = 0;
    std::string list;
    for (const auto& [name, count] : names) {
      total += count;
      list += (list.empty() ? "" : ", ") + (names.size() > 1 ? fmt::format("{} {}", count, name) : name);
    }
    out += fmt::format("{}{} {} ({})", out.empty() ? "runs " : ", ", one, total, list);
  }
  return out.empty() ? out : out + '\n';
}

int run(const ExplainOptions& options) {
  const Execution execution = start(options.execution);
  const Model model =
      load_model(options.model_path,
                 {.fused = !options.unfused, .session = {.memory_limit_bytes = options.inputs.memory_limit_bytes}});
  const Graph& graph = model.session().graph();
  print("{}\n", text(model));
  const std::vector<TensorInfo> infos = model_input_infos(graph, options.inputs.shapes);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    print("input {} {} {}, planned for {}\n", printable(graph.value_name(graph.inputs()[i].value)),
          headway::type_name(infos[i].type), text(graph.inputs()[i].dims), text(infos[i].dims));
  }
  if (!options.unfused) print("{}\n{}", attention_fused(model.fusion()), model.fusion().text());
  const std::string plan = model.session().explain(infos, execution.threads.workers());
  print("{}", implementations(plan));
  print("{}", options.all_nodes ? plan : attention_only(plan));
  return kExitGood;
}

}  // namespace

void add_explain(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app->add_subcommand("explain", "Say what is in an ONNX model and how it would run");
  command->add_option("model", options->model_path, "A file.onnx")->required();
  add_model_input_options(command, &options->inputs, true);
  command->add_flag("--nodes", options->all_nodes, "Every node, not only attention");
  command->add_flag("--unfused", options->unfused, "The nodes as the file has them");
  add_memory_option(command, &options->inputs.memory_limit_bytes);
  add_execution_options(command, &options->execution);
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
