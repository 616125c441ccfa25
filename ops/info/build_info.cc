// Asks the parts: the release, Highway's targets, oneDNN, the system.
#include "headway/build_info.h"

#include <fstream>
#include <thread>

#include "headway/version.h"
#include "ops/matmul/onednn_version.h"
#include "ops/simd/target.h"

namespace headway {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace

BuildInfo build_info() {
  return {version(),        compiler(),        onednn_compiled_version(),
          onednn_version(), highway_version(), simd_compiled_targets()};
}

CpuInfo cpu_info() {
  return {cpu_name(),     static_cast<int>(std::thread::hardware_concurrency()),
          simd_targets(), simd_target(),
          simd_lanes(),   cpu_has_bf16_products()};
}

}  // namespace headway
