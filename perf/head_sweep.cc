// Whole multi-head attention at one model width and every head count: the figure that should stay flat. In f32 and in
// bf16; the share of the peak is of the f32 FMA peak in both.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "headway/multi_head_attention.h"
#include "ops/attention/narrow.h"
#include "perf/measure.h"
#include "perf/shapes.h"

namespace headway::perf {
namespace {

/// As it is, or as bf16.
Tensor in_type(DataType type, Tensor f32) {
  if (type == DataType::kF32) return f32;
  Tensor narrow(type, f32.dims());
  convert_view(std::as_const(f32).view(), narrow.view());
  return narrow;
}

void head_sweep(benchmark::State& state, const SweepShape& shape, DataType type) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const std::int64_t e = shape.embed_dim;
  // Projected values of about unit variance, so that softmax rows are neither one-hot nor uniform.
  const float range = 1.7f / std::sqrt(static_cast<float>(e));
  const auto weight = [&](std::uint32_t seed) { return in_type(type, random_tensor({e, e}, range, seed)); };
  const Tensor wq = weight(1), wk = weight(2), wv = weight(3), wo = weight(4);
  const Tensor x = in_type(type, random_tensor({shape.batch, shape.seq, e}, 1.7f, 5));
  Tensor y(type, {shape.batch, shape.seq, e});

  MultiHeadAttentionSpec spec;
  spec.type = type;
  spec.batch = shape.batch;
  spec.query_len = shape.seq;
  spec.embed_dim = e;
  spec.num_heads = shape.num_heads;
  spec.self_attention = true;
  MultiHeadAttentionWeights weights;
  weights.query = wq.view();
  weights.key = wk.view();
  weights.value = wv.view();
  weights.output = wo.view();
  const MultiHeadAttention layer(spec, weights);
  const AlignedBuffer workspace(layer.workspace_bytes(threads.workers()));
  MultiHeadAttentionArgs args;
  args.query = args.key = args.value = x.view();
  args.out = y.view();

  const PeakBracket peak(threads);
  for (auto _ : state) {
    layer.run(args, workspace.data(), threads);
    benchmark::ClobberMemory();
  }
  peak.report(state, static_cast<double>(layer.projection_flops() + nominal_attention_flops(layer.core().spec())));
  state.SetLabel(std::string(layer.core().implementation()));
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
