// Options that choose how to compute. See execution.h.
#include "tools/command/execution.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "headway/error.h"
#include "ops/simd/target.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"

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

namespace {

struct SizeUnit {
  const char* name;  ///< in lower case
  std::size_t bytes;
};
constexpr std::size_t kKilo = 1000, kKibi = 1024;
constexpr SizeUnit kSizeUnits[] = {{"", 1},
                                   {"b", 1},
                                   {"kb", kKilo},
                                   {"mb", kKilo* kKilo},
                                   {"gb", kKilo* kKilo* kKilo},
                                   {"tb", kKilo* kKilo* kKilo* kKilo},
                                   {"kib", kKibi},
                                   {"mib", kKibi* kKibi},
                                   {"gib", kKibi* kKibi* kKibi},
                                   {"tib", kKibi* kKibi* kKibi* kKibi}};

/// Nothing when it is no such number, or one that no size_t holds. CLI11's own takes −1 for the largest.
std::optional<std::size_t> bytes_of(const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string unit(after, end);
  unit.erase(0, unit.find_first_not_of(' '));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const SizeUnit& known : kSizeUnits) {
    std::size_t bytes = 0;
    if (unit == known.name && !__builtin_mul_overflow(number, known.bytes, &bytes)) return bytes;
  }
  return std::nullopt;
}

}  // namespace

void add_memory_option(CLI::App* command, std::optional<std::size_t>* limit_bytes) {
  command
      ->add_option_function<std::string>(
          "--memory-limit",
          [limit_bytes](const std::string& text) {
            *limit_bytes = bytes_of(text);
            if (!*limit_bytes) {
              throw CLI::ValidationError("--memory-limit", "is '" + printable(text, 40) +
                                                               "', expected a number of bytes below 2^64, such as "
                                                               "500000000, 500MB or 2GiB");
            }
          },
          "Refuse what needs more memory, such as 2GB or 500MiB (default: what the machine or the container has, less "
          "an eighth)")
      ->type_name("SIZE");
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
