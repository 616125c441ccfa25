// The machine itself: the FMA peak, read bandwidth from each level of memory. Every other figure is relative to these.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "ops/simd/target.h"
#include "perf/measure.h"
#include "tools/measure/peak/peak.h"

namespace headway::perf {
namespace {

constexpr double kSeconds = 0.05;

// The functions time themselves; the benchmark's own time is only how long they took.
void fma_peak(benchmark::State& state) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  double best = 0;
  for (auto _ : state) best = std::max(best, measure_fma_peak(threads, kSeconds));
  state.counters["GF/s"] = best * 1e-9;
  state.SetLabel(simd_target());
}

void read_bandwidth(benchmark::State& state) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const std::size_t bytes = static_cast<std::size_t>(state.range(1)) << 10;
  double best = 0;
  for (auto _ : state) best = std::max(best, measure_read_bandwidth(threads, bytes, kSeconds));
  state.counters["GB/s"] = best * 1e-9;
}

}  // namespace

void register_peaks() {
  at_worker_counts(benchmark::RegisterBenchmark("fma_peak", fma_peak))->Iterations(5);
  auto* bandwidth = benchmark::RegisterBenchmark("read_bandwidth", read_bandwidth)->ArgNames({"workers", "KiB"});
  const int all = Threads::openmp().workers();
  for (int workers : {1, all}) {
    for (std::int64_t kib : {32, 512, 8 << 10, 256 << 10}) bandwidth->Args({workers, kib});
    if (all == 1) break;
  }
  bandwidth->Iterations(3);
}

}  // namespace headway::perf
