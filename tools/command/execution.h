// How a subcommand computes: threads, implementation, SIMD target; the options that say so. Knows no tensors.
#pragma once

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

struct Execution {
  Threads threads;
  AttentionOptions attention;
  bool forced = false;  ///< an implementation is forced, by option or environment
};

/// Caps the SIMD target and makes the threads. Throws kInvalidArgument for a name that is not known.
Execution start(const ExecutionOptions& options);

}  // namespace headway::tools
