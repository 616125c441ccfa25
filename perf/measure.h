// What every suite shares: data that is neither constant nor saturating, the peak before and after, the counters.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "headway/tensor.h"
#include "headway/threads.h"
#include "ops/base/narrow.h"
#include "tools/measure/peak/peak.h"

namespace headway::perf {

/// Fills an f32 tensor with a fixed sequence, evenly spread over [−range, range).
inline void fill(Tensor* tensor, float range, std::uint32_t seed) {
  float* data = tensor->data<float>();
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < tensor->count(); ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = range * (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
}

inline Tensor random_tensor(const Dims& dims, float range, std::uint32_t seed) {
  Tensor tensor(DataType::kF32, dims);
  fill(&tensor, range, seed);
  return tensor;
}

/// `tensor`, which is f32, in this type.
inline Tensor in_type(DataType type, Tensor tensor) {
  if (type == DataType::kF32) return tensor;
  Tensor narrow(type, tensor.dims());
  convert_view(std::as_const(tensor).view(), narrow.view());
  return narrow;
}

/// The FMA peak around one benchmark: measured when made and again by report(). Clocks drift by tens of percent within
/// minutes, so a share of the peak means something only against a peak of the same moment. In bf16 also that of its
/// own products, where there are such.
/// Everything between construction and report() is taken for the benchmark's loop.
class PeakBracket {
 public:
  explicit PeakBracket(const Threads& threads, DataType type = DataType::kF32)
      : threads_(threads), type_(type), before_(measure_fma_peak(threads)), begin_(std::chrono::steady_clock::now()) {}

  /// Adds GF/s and the percentage of the mean of both peaks. `flops` is the work of one iteration.
  void report(benchmark::State& state, double flops) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const double rate = flops * static_cast<double>(state.iterations()) / elapsed.count();
    const double peak = 0.5 * (before_ + measure_fma_peak(threads_));
    state.counters["GF/s"] = rate * 1e-9;
    state.counters["%peak"] = 100.0 * rate / peak;
    state.counters["peak"] = peak * 1e-9;
    if (type_ != DataType::kBF16) return;
    if (const double pairs = measure_bf16_peak(threads_); pairs > 0) state.counters["%pairs"] = 100.0 * rate / pairs;
  }

 private:
  Threads threads_;
  DataType type_;
  double before_;
  std::chrono::steady_clock::time_point begin_;
};

/// Runs a benchmark at one worker and at all that OpenMP would take. A template because the type of what
/// RegisterBenchmark returns has moved between releases.
template <class Benchmark>
Benchmark* at_worker_counts(Benchmark* b) {
  b->ArgName("workers")->Arg(1);
  if (const int all = Threads::openmp().workers(); all > 1) b->Arg(all);
  return b;
}

}  // namespace headway::perf
