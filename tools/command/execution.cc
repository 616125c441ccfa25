// Options that choose how to compute. See execution.h.
#include "tools/command/execution.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "headway/error.h"
#include "ops/simd/target.h"
#include "runtime/base/check.h"

namespace headway::tools {

void add_execution_options(CLI::App* command, ExecutionOptions* options) {
  constexpr int kMaxThreads = 1024;
  command->add_option("--threads", options->threads, "Threads (default: one per CPU that may be used)")
      ->check(CLI::Range(1, kMaxThreads));
  command->add_option("--pool", options->pool, "Who runs them: own (default), openmp or serial (also HEADWAY_POOL)");
  command->add_option("--implementation", options->implementation,
                      "Force an attention implementation, of those that info lists (also HEADWAY_ATTENTION)");
  command->add_option("--simd", options->simd, "Cap the SIMD target, such as AVX2 (also HEADWAY_SIMD)");
}

void add_memory_option(CLI::App* command, std::optional<std::size_t>* limit_bytes) {
  command
      ->add_option_function<std::size_t>(
          "--memory-limit", [limit_bytes](std::size_t bytes) { *limit_bytes = bytes; },
          "Refuse what needs more memory, such as 2GB or 500MiB (default: what the machine or the container has, less "
          "an eighth)")
      ->transform(CLI::AsSizeValue(true));
}

namespace {

Threads threads_of(const ExecutionOptions& options) {
  const char* variable = std::getenv("HEADWAY_POOL");
  const bool by_option = !options.pool.empty();
  const std::string pool = by_option ? options.pool : variable != nullptr && *variable != 0 ? variable : "own";
  if (pool == "own") return Threads::pool(options.threads);
  if (pool == "openmp") return Threads::openmp(options.threads);
  require(pool == "serial", by_option ? "--pool" : "HEADWAY_POOL", " is '", pool,
          "', expected one of own, openmp, serial");
  require(options.threads <= 1, "--threads is ", options.threads, ", expected 1 with a serial pool");
  return Threads::serial();
}

}  // namespace

Execution start(const ExecutionOptions& options) {
  if (!options.simd.empty()) cap_simd_target(options.simd);
  const char* variable = std::getenv("HEADWAY_ATTENTION");
  const bool by_option = !options.implementation.empty();
  const std::string forced = by_option ? options.implementation : variable ? variable : "";
  if (!forced.empty()) {
    const std::vector<std::string> known = attention_implementations();
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    require(std::find(known.begin(), known.end(), forced) != known.end(),
            by_option ? "--implementation" : "HEADWAY_ATTENTION", " is '", forced, "', expected one of ", list);
  }
  return {threads_of(options), {options.implementation}, !forced.empty()};
}

}  // namespace headway::tools
