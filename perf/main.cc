// Registers the suites one by one, in the order in which a reader wants them; --benchmark_filter picks among them.
#include <benchmark/benchmark.h>

#include <string>

#include "ops/matmul/matmul.h"
#include "ops/simd/target.h"

namespace headway::perf {

void register_peaks();
void register_softmax();
void register_core();
void register_head_sweep();
void register_decode();
void register_small();
void register_fused();
void register_growth();

}  // namespace headway::perf

int main(int argc, char** argv) {
  using namespace headway;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("simd_target", simd_target());
  benchmark::AddCustomContext("highway", highway_version());
  benchmark::AddCustomContext("onednn", onednn_version());
  perf::register_peaks();
  perf::register_softmax();
  perf::register_core();
  perf::register_head_sweep();
  perf::register_decode();
  perf::register_small();
  perf::register_fused();
  perf::register_growth();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
