// headway explain: what is in a model and what will become of it, without running it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <sstream>

#include "tools/command/commands.h"
#include "tools/command/execution.h"
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

int run(const ExplainOptions& options) {
  const Execution execution = start(options.execution);
  const Model model = load_model(options.model_path, !options.unfused, options.inputs.memory_limit_bytes);
  const Graph& graph = model.session->graph();
  fmt::print("{}\n", text(model));
  const std::vector<TensorInfo> infos = model_input_infos(graph, options.inputs.shapes);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    fmt::print("input {} {} {}, planned for {}\n", graph.value_name(graph.inputs()[i].value),
               headway::type_name(infos[i].type), text(graph.inputs()[i].dims), text(infos[i].dims));
  }
  if (!options.unfused) fmt::print("{}\n{}", attention_fused(model.fusion), model.fusion.text());
  const std::string plan = model.session->explain(infos, execution.threads.workers());
  fmt::print("{}", options.all_nodes ? plan : attention_only(plan));
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
