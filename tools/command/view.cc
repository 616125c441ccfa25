// headway view: one page on which a person looks at the heads of a layer or a model.
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "headway/version.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/process.h"
#include "tools/command/report_file.h"
#include "tools/heads/report.h"
#include "tools/heads/source.h"
#include "tools/measure/machine.h"
#include "tools/view/layer_data.h"
#include "tools/view/page.h"

namespace headway::tools {
namespace {

struct ViewOptions {
  HeadSourceOptions source;
  std::string out_path;
};

int run(const ViewOptions& options) {
  check_outputs({options.out_path}, files_read(options.source));
  const Execution execution = start(options.source.execution);
  const std::int64_t batch = options.source.batch;
  SharedArrays biases;
  PageParts parts;
  std::string layers;
  std::size_t heads_shown = 0;
  const HeadSource source = show_heads(options.source, [&](const ShownAttention& shown) {
    const std::vector<HeadMeasures> heads =
        measure_heads(shown.seen.spec, shown.seen.args, batch, shown.tokens, execution.threads);
    LayerData layer = layer_data(shown, batch, heads, &biases, execution.threads);
    const std::string number = std::to_string(parts.large.size());
    layers += (parts.large.empty() ? "" : ",\n") + layer.json;
    parts.small.push_back({"thumbnails-" + number, std::move(layer.thumbnails)});
    parts.large.push_back({"layer-" + number, std::move(layer.bytes)});
    heads_shown += heads.size();
  });
  const std::size_t num_layers = parts.large.size();
  // Before the layers, as the first of them needs its masks.
  std::vector<PageData> masks;
  for (const std::string& bytes : biases.arrays()) masks.push_back({"bias-" + std::to_string(masks.size()), bytes});
  parts.large.insert(parts.large.begin(), masks.begin(), masks.end());
  const nlohmann::json about = {{"version", version()},  {"command", command_line()},
                                {"source", source.what}, {"notes", source.notes},
                                {"date", today()},       {"machine", text(describe_machine(execution.threads))},
                                {"batch", batch},        {"separator", options.source.separator},
                                {"roles", roles_json()}};
  parts.title = "Heads: " + source.what;
  parts.json = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  parts.json.back() = ',';
  parts.json += "\"layers\":[\n" + layers + "]}";
  const std::string html = page(parts);
  write_report(options.out_path, html);
  std::FILE* const out = options.out_path == "-" ? stderr : stdout;
  print(out, "{}\n", source.what);
  for (const std::string& note : source.notes) print(out, "{}\n", note);
  print(out, "{} layers, {} heads, {:.1f} MB\n", num_layers, heads_shown, static_cast<double>(html.size()) * 1e-6);
  return kExitGood;
}

}  // namespace

void add_view(CLI::App* app, Action* chosen) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command = app->add_subcommand("view", "Write a page on which a person looks at the heads");
  command->footer(
      "A layer is given as to attend, a model as to run. The page is one HTML file that opens from disk and asks for\n"
      "nothing. Tokens name the positions; without any, those of an input that ends in input_ids are its numbers.");
  add_head_source_options(command, &options->source);
  command
      ->add_option("--out", options->out_path, "Write the page here, whole or not at all (- for the standard output)")
      ->required();
  command->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace headway::tools
