// What was built and what it runs on: release, compiler, libraries, SIMD targets, CPU. For the head of a report or a
// bug report. Measures nothing.
#pragma once

#include <string>
#include <vector>

#include "headway/export.h"

namespace headway {

/// Of the library that is linked.
struct BuildInfo {
  std::string version;                     ///< as version(): "1.0.0"
  std::string compiler;                    ///< "GCC 12.2.0"
  std::string onednn_compiled;             ///< of the headers that it was compiled against: "2.6.3"
  std::string onednn_runtime;              ///< of the library that it runs with
  std::string highway;                     ///< of the headers; Highway has little else
  std::vector<std::string> simd_compiled;  ///< targets that there are kernels for, best first: "AVX3", "AVX2", …
};

/// Of this machine, and of what is made of it.
struct CpuInfo {
  std::string name;                         ///< "Intel(R) Xeon(R) Processor"; "unknown CPU" where it cannot be told
  int logical_cores = 0;                    ///< that the process may see; 0 where it cannot be told
  std::vector<std::string> simd_available;  ///< of the compiled targets those that this CPU runs, best first
  std::string simd_current;    ///< of those the one that plans made now use: the first, or that of HEADWAY_SIMD
  int simd_lanes = 0;          ///< floats in one of its vectors
  bool bf16_products = false;  ///< multiplies pairs of bf16 and adds them up in f32 (AVX512_BF16)
};

/// Thread-safe; allocates. cpu_info() throws kInvalidArgument when HEADWAY_SIMD names a target that this CPU has not.
HEADWAY_API BuildInfo build_info();
HEADWAY_API CpuInfo cpu_info();

}  // namespace headway
