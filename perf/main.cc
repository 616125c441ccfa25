// Registers the suites one by one, in the order in which a reader wants them; --benchmark_filter picks among them.
#include <benchmark/benchmark.h>

#include <string>

#include "headway/build_info.h"

namespace headway::perf {

void register_peaks();
void register_softmax();
void register_core();
void register_head_sweep();
void register_decode();
void register_cached();
void register_append();
void register_packed();
void register_small();
void register_fused();
void register_growth();

}  // namespace headway::perf

int main(int argc, char** argv) {
  using namespace headway;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const BuildInfo build = build_info();
  benchmark::AddCustomContext("simd_target", cpu_info().simd_current);
  benchmark::AddCustomContext("highway", build.highway);
  benchmark::AddCustomContext("onednn", build.onednn_runtime);
  perf::register_peaks();
  perf::register_softmax();
  perf::register_core();
  perf::register_head_sweep();
  perf::register_decode();
  perf::register_cached();
  perf::register_append();
  perf::register_packed();
  perf::register_small();
  perf::register_fused();
  perf::register_growth();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
