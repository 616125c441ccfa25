// headway heads: what the heads of a layer or a model attend to, in numbers, and what they may be for.
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/report_file.h"
#include "tools/heads/report.h"
#include "tools/heads/source.h"

namespace headway::tools {
namespace {

struct HeadsOptions {
  HeadSourceOptions source;
  std::string json_path;
};

int run(const HeadsOptions& options) {
  check_outputs({options.json_path}, files_read(options.source));
  const Execution execution = start(options.source.execution);
  std::vector<HeadsOfLayer> layers;
  const HeadSource source = show_heads(options.source, [&](const ShownAttention& shown) {
    const AttentionSpec& spec = shown.seen.spec;
    layers.push_back({shown.seen.name, shown.seen.op, shown.positions.defined, spec.query_len, spec.key_len,
                      measure_heads(spec, shown.seen.args, options.source.batch, shown.tokens, execution.threads)});
  });
  std::FILE* const out = options.json_path == "-" ? stderr : stdout;
  print(out, "{}\n", source.what);
  for (const std::string& note : source.notes) print(out, "{}\n", note);
  print(out, "{}{}", heads_table(layers), role_definitions());
  nlohmann::json report = heads_json(layers);
  report["source"] = source.what;
  report["batch"] = options.source.batch;
  write_report(options.json_path, report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return kExitGood;
}

}  // namespace

void add_heads(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<HeadsOptions>();
  CLI::App* command = app->add_subcommand("heads", "Measure what each head attends to, and name what it may be for");
  command->footer(
      "A layer is given as to attend, a model as to run. Memory does not grow with the square of the length: rows of\n"
      "probabilities are computed tile by tile. Tokens name the positions; without any, those of an input that ends "
      "in\n"
      "input_ids are its numbers, and roles that need tokens are left out where there are none.");
  add_head_source_options(command, &options->source);
  command->add_option("--json", options->json_path, "Write the numbers as JSON (- for the standard output)");
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
