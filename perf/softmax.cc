// exp and the row softmax alone: ticks an element, the term of attention that grows with the head count.
#include <benchmark/benchmark.h>

#include "headway/profiler.h"
#include "ops/simd/softmax.h"
#include "ops/simd/target.h"
#include "perf/measure.h"
#include "perf/shapes.h"

namespace headway::perf {
namespace {

/// Adds the cost of one element in ns, in ticks and in FMA times: the time in which the same vectors would do one f32
/// FMA each. Ticks are of the constant-rate counter, which is close to cycles only at the nominal clock.
void report_elements(benchmark::State& state, std::uint64_t ticks, std::int64_t elements) {
  const double per_element =
      static_cast<double>(ticks) / (static_cast<double>(elements) * static_cast<double>(state.iterations()));
  const double ns = per_element * nanoseconds_per_tick();
  state.counters["ns/elem"] = ns;
  state.counters["ticks/elem"] = per_element;
  state.counters["fma/elem"] = ns * 1e-9 * 0.5 * measure_fma_peak(Threads::serial());
  state.SetLabel(simd_target());
}

void exponential(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const Tensor x = random_tensor({n}, 10.0f, 1);
  Tensor y(DataType::kF32, {n});
  const SoftmaxKernels kernels = softmax_kernels();
  const std::uint64_t begin = ticks_now();
  for (auto _ : state) {
    kernels.exp(x.data<float>(), y.data<float>(), n);
    benchmark::ClobberMemory();
  }
  report_elements(state, ticks_now() - begin, n);
}

/// In place: after the first pass the row holds probabilities, which cost the same.
void softmax_row(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  Tensor row = random_tensor({n}, 4.0f, 2);
  const SoftmaxKernels kernels = softmax_kernels();
  const std::uint64_t begin = ticks_now();
  for (auto _ : state) {
    kernels.softmax_row(row.data<float>(), n);
    benchmark::ClobberMemory();
  }
  report_elements(state, ticks_now() - begin, n);
}

}  // namespace

void register_softmax() {
  for (std::int64_t n : kSoftmaxLengths) {
    benchmark::RegisterBenchmark("exp", exponential)->ArgName("n")->Arg(n);
    benchmark::RegisterBenchmark("softmax_row", softmax_row)->ArgName("n")->Arg(n);
  }
}

}  // namespace headway::perf
