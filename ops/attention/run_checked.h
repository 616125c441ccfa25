// Running attention whose arguments the caller has checked, so that a layer around the core checks them once per call.
// Knows no implementation.
#pragma once

#include <cstddef>

#include "headway/attention.h"

namespace headway {

struct AttentionInternals {
  /// Attention::run() without check_args() and the look at the workspace: `args` must have passed check_args() with the
  /// spec of `attention`.
  static void run_checked(const Attention& attention, const AttentionArgs& args, std::byte* workspace,
                          const Threads& threads, Profiler* profiler);
};

}  // namespace headway
