// Whole multi-head attention at one model width and every head count: the figure that should stay flat. In f32 and in
// bf16; the share of the peak is of the f32 FMA peak in both.
#include <benchmark/benchmark.h>

#include <string>

#include "perf/layer.h"

namespace headway::perf {
namespace {

void head_sweep(benchmark::State& state, const SweepShape& shape, DataType type) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const RandomLayer random(shape, type, threads.workers());
  const PeakBracket peak(threads);
  for (auto _ : state) {
    random.run(threads);
    benchmark::ClobberMemory();
  }
  peak.report(state, random.flops());
  state.SetLabel(std::string(random.layer().core().implementation()));
}

}  // namespace

void register_head_sweep() {
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    for (std::int64_t heads : kSweepHeads) {
      const SweepShape shape{1, kSweepSeq, kSweepEmbedDim, heads};
      const std::string of_type = type == DataType::kBF16 ? "bf16/" : "";
      const std::string name = "head_sweep/" + of_type + "heads:" + std::to_string(heads);
      at_worker_counts(benchmark::RegisterBenchmark(name.c_str(), head_sweep, shape, type))
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace headway::perf
