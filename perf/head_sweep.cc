// Whole multi-head attention at one model width and every head count: the figure that should stay flat.
#include <benchmark/benchmark.h>

#include <string>

#include "headway/multi_head_attention.h"
#include "perf/measure.h"
#include "perf/shapes.h"

namespace headway::perf {
namespace {

void head_sweep(benchmark::State& state, const SweepShape& shape) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const std::int64_t e = shape.embed_dim;
  // Projected values of about unit variance, so that softmax rows are neither one-hot nor uniform.
  const float range = 1.7f / std::sqrt(static_cast<float>(e));
  const Tensor wq = random_tensor({e, e}, range, 1), wk = random_tensor({e, e}, range, 2);
  const Tensor wv = random_tensor({e, e}, range, 3), wo = random_tensor({e, e}, range, 4);
  const Tensor x = random_tensor({shape.batch, shape.seq, e}, 1.7f, 5);
  Tensor y(DataType::kF32, {shape.batch, shape.seq, e});

  MultiHeadAttentionSpec spec;
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
  for (std::int64_t heads : kSweepHeads) {
    const SweepShape shape{1, kSweepSeq, kSweepEmbedDim, heads};
    const std::string name = "head_sweep/heads:" + std::to_string(heads);
    at_worker_counts(benchmark::RegisterBenchmark(name.c_str(), head_sweep, shape))
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

}  // namespace headway::perf
