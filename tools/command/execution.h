// How a subcommand computes: threads, implementation, SIMD target; the options that say so. Knows no tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "headway/attention.h"
#include "headway/threads.h"

namespace CLI {
class App;
}

namespace headway::tools {

struct ExecutionOptions {
  int threads = 0;   ///< 0: the pool's default
  std::string pool;  ///< own, openmp or serial; empty: HEADWAY_POOL, else own
  std::string implementation;
  std::string simd;
};

/// Adds --threads, --pool, --implementation and --simd.
void add_execution_options(CLI::App* command, ExecutionOptions* options);

/// Adds --memory-limit, in bytes or with a unit.
void add_memory_option(CLI::App* command, std::optional<std::size_t>* limit_bytes);

struct Execution {
  Threads threads;
  AttentionOptions attention;
  bool forced = false;  ///< an implementation is forced, by option or environment
};

/// Caps the SIMD target and makes the threads. Throws kInvalidArgument for a name that is not known.
Execution start(const ExecutionOptions& options);

}  // namespace headway::tools
