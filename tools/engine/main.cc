// headway_engine FOLDER: token ids in, token ids out. Decides what the command line says; the loop is engine.h's.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "headway/error.h"
#include "tools/engine/engine.h"
#include "tools/engine/requests_file.h"

namespace headway::engine {
namespace {

constexpr int kExitBadUse = 2;

struct Options {
  std::string folder, requests, prompt, cache_type = "f32";
  EngineOptions engine;
  Request defaults;
  int threads = 0;
  bool explain = false;
};

void add_options(CLI::App* app, Options* o) {
  app->add_option("folder", o->folder, "A checkpoint: config.json and model.safetensors, as transformers saves them")
      ->required();
  const auto prompt = app->add_option("--prompt", o->prompt, "Token ids of one request, separated by commas");
  app->add_option(
         "--requests", o->requests,
         "A file of requests, a JSON object a line: {\"id\": \"a\", \"prompt\": [1, 2], \"max_new_tokens\": 8, …}")
      ->excludes(prompt);
  app->add_option("--max-new-tokens", o->defaults.max_new_tokens, "Tokens to generate, where a request does not say");
  app->add_option("--temperature", o->defaults.sampling.temperature, "0: the most likely token")
      ->check(CLI::Range(0.0, 1e3));
  app->add_option("--top-k", o->defaults.sampling.top_k, "Most likely tokens to choose among; 0: all")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--top-p", o->defaults.sampling.top_p, "Share of the probability to choose from")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--seed", o->defaults.sampling.seed, "Of the choice");
  app->add_option("--blocks", o->engine.decoder.blocks, "Blocks of the cache")->check(CLI::Range(1, 1 << 30));
  app->add_option("--block-size", o->engine.decoder.block_size, "Tokens a block")->check(CLI::Range(1, 1 << 20));
  app->add_option("--max-tokens", o->engine.decoder.max_tokens, "Tokens of a step, prompts and decodes together")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--max-batch", o->engine.decoder.max_batch, "Requests under way")->check(CLI::Range(1, 1 << 16));
  app->add_option("--cache-type", o->cache_type, "Of keys and values: f32, bf16 or f16")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  app->add_flag("--batch-invariant", o->engine.decoder.batch_invariant, "The same bits whatever else is in the batch");
  app->add_option("--threads", o->threads, "0: all that the process may use")->check(CLI::Range(0, 1024));
  app->add_flag("--explain", o->explain, "Print how a layer is computed, and stop");
}

std::vector<Request> requests_of(const Options& o) {
  if (!o.requests.empty()) return read_requests(o.requests, o.defaults);
  Request request = o.defaults;
  request.id = "0";
  request.prompt = parse_ids(o.prompt, "--prompt");
  return {request};
}

int run(Options o) {
  if (o.cache_type == "bf16") o.engine.decoder.cache_type = DataType::kBF16;
  if (o.cache_type == "f16") o.engine.decoder.cache_type = DataType::kF16;
  const Threads threads = Threads::pool(o.threads);
  if (o.explain) {
    std::cout << Decoder(o.folder, o.engine.decoder, threads).explain() << '\n';
    return 0;
  }
  const std::vector<Request> requests = requests_of(o);
  Engine engine(o.folder, o.engine, threads);
  for (const Request& request : requests) engine.submit(request);
  while (!engine.idle()) {
    for (const Sequence& done : engine.step()) std::cout << result_line(done) << std::endl;
  }
  std::cerr << engine.summary() << '\n';
  return std::cout ? 0 : kExitBadUse;
}

}  // namespace
}  // namespace headway::engine

int main(int argc, char** argv) {
  CLI::App app("A small decoder on Headway's public API: continuous batching over a paged cache");
  headway::engine::Options options;
  headway::engine::add_options(&app, &options);
  try {
    app.parse(argc, argv);
    return headway::engine::run(std::move(options));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : headway::engine::kExitBadUse;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return headway::engine::kExitBadUse;
  }
}
