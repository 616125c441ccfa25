// See source.h.
#include "tools/heads/source.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "headway/model.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "tools/model/model.h"

namespace headway::tools {
namespace {

AttentionCapture::Show shown_with(const HeadSourceOptions& options, TokenLists* lists,
                                  const std::function<void(const ShownAttention&)>& show) {
  return [&options, lists, &show](const SeenAttention& seen) {
    require(options.batch < seen.spec.batch, "--batch is ", options.batch, ", expected 0 to ", seen.spec.batch - 1);
    const Positions positions = positions_of(seen.spec, seen.args, options.batch);
    show({seen, lists->of(seen.spec, positions, options.separator), positions});
  };
}

HeadSource show_call(const HeadSourceOptions& options, TokenLists* lists,
                     const std::function<void(const ShownAttention&)>& show) {
  const AttentionCallOptions& call = options.call;
  require(!call.input_path.empty(), "neither a model nor --input is given");
  require(options.inputs.files.empty() && options.inputs.shapes.empty(),
          "--inputs and --shape are for a model; a layer takes --input");
  const SafetensorsFile input = SafetensorsFile::open(call.input_path);
  check_input_names(input);
  const Execution execution = start(options.execution);
  const std::string& file = call.weights_path.empty() ? call.input_path : call.weights_path;
  const AttentionCapture capture(call.prefix.empty() ? "layer" : call.prefix, execution.threads,
                                 shown_with(options, lists, show));
  const CallResult result = call_attention(call, WeightsOutput::kNone, input, options.execution);
  require(capture.seen() > 0, printable(call.input_path), " has no query row, so there is nothing to see");
  return {fmt::format("{}{}", printable(file), call.prefix.empty() ? "" : ", " + printable(call.prefix)),
          {fmt::format("implementation {}", result.implementation)}};
}

HeadSource show_model(const HeadSourceOptions& options, TokenLists* lists,
                      const std::function<void(const ShownAttention&)>& show) {
  require(options.call.input_path.empty() && options.call.weights_path.empty(),
          "--weights and --input are for a layer; a model takes --inputs");
  const Execution execution = start(options.execution);
  const Model model =
      load_model(options.model_path, {.session = {.memory_limit_bytes = options.inputs.memory_limit_bytes}});
  const Graph& graph = model.session().graph();
  const ModelInputs inputs(graph, options.inputs);
  lists->add_model_inputs(graph, inputs.views(), options.batch);
  const AttentionCapture capture("attention", execution.threads, shown_with(options, lists, show));
  model.session().run(inputs.views(), execution.threads);
  require(capture.seen() > 0, printable(options.model_path),
          " has no attention that can be seen: ", attention_fused(model.fusion()), " (headway explain tells more)");
  HeadSource source{fmt::format("{}: {}", printable(options.model_path), text(model)), {}};
  source.notes.push_back(attention_fused(model.fusion()));
  for (const std::string& line : inputs.lines()) source.notes.push_back("input " + line);
  return source;
}

}  // namespace

void add_head_source_options(CLI::App* command, HeadSourceOptions* options) {
  command->add_option("model", options->model_path, "A file.onnx, all of whose attention is looked into");
  add_model_input_options(command, &options->inputs, false);
  add_attention_call_options(command, &options->call);
  command
      ->add_option("--tokens", options->token_paths,
                   "Names of the positions, a line each (.json: an array of strings); an axis takes the first file "
                   "with as many")
      ->delimiter(',');
  command->add_option("--separator", options->separator, "The token that separates, such as [SEP]");
  command->add_option("--batch", options->batch, "Which batch entry")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_memory_option(command, &options->inputs.memory_limit_bytes);
  add_execution_options(command, &options->execution);
}

std::vector<std::string> files_read(const HeadSourceOptions& options) {
  std::vector<std::string> files = {options.model_path, options.call.weights_path, options.call.input_path};
  files.insert(files.end(), options.token_paths.begin(), options.token_paths.end());
  for (const std::string& input : options.inputs.files) {
    files.push_back(input);
    if (const std::size_t name = input.find('='); name != std::string::npos) files.push_back(input.substr(name + 1));
  }
  return files;
}

HeadSource show_heads(const HeadSourceOptions& options, const std::function<void(const ShownAttention&)>& show) {
  TokenLists lists;
  for (const std::string& path : options.token_paths) lists.add_file(path);
  HeadSource source = options.model_path.empty() ? show_call(options, &lists, show) : show_model(options, &lists, show);
  lists.check_used();
  return source;
}

}  // namespace headway::tools
