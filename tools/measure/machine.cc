// Asking the machine. See machine.h.
#include "tools/measure/machine.h"

#include <fmt/core.h>
#include <unistd.h>
#include <ctime>
#include <nlohmann/json.hpp>

#include "headway/build_info.h"

namespace headway::tools {

Machine describe_machine(const Threads& threads) {
  const CpuInfo cpu = cpu_info();
  const BuildInfo build = build_info();
  return {cpu.name,           cpu.logical_cores,    threads.workers(), cpu.simd_current,
          cpu.simd_available, build.onednn_runtime, build.highway};
}

std::string text(const Machine& machine) {
  return fmt::format("{}, {} logical cores, {} thread{}, {}, oneDNN {}, Highway {}", machine.cpu, machine.cores,
                     machine.threads, machine.threads == 1 ? "" : "s", machine.simd, machine.onednn, machine.highway);
}

nlohmann::json to_json(const Machine& machine, double fma_peak_flops) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"simd", machine.simd},
          {"simd_available", machine.simd_available},
          {"onednn", machine.onednn},
          {"highway", machine.highway},
          {"fma_peak_gflops", fma_peak_flops * 1e-9}};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d", &date);
  return {text, length};
}

std::size_t physical_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes) : 0;
}

}  // namespace headway::tools
