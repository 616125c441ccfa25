// PackedMatmul, an engine's products: the projections and feed-forward layers of models at the rows of prefill chunks,
// with what an epilogue adds. %peak is against the FMA peak measured around each.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "headway/packed_matmul.h"
#include "perf/layer.h"

namespace headway::perf {
namespace {

struct PackedLoad {
  std::int64_t rows, columns, depth;
  Activation activation = Activation::kNone;
  bool bias = false;
  DataType weight_type = DataType::kF32;
};

void packed(benchmark::State& state, const PackedLoad& load) {
  const Threads threads = Threads::pool(static_cast<int>(state.range(0)));
  const Tensor weight = in_type(load.weight_type, random_tensor({load.columns, load.depth}, 0.1f, 1));
  PackedMatmulWeights weights;
  weights.weight = weight.view();
  const Tensor bias = in_type(load.weight_type, random_tensor({load.columns}, 0.1f, 2));
  if (load.bias) weights.bias = bias.view();
  const PackedMatmul matmul({.columns = load.columns, .depth = load.depth, .activation = load.activation}, weights);
  const AlignedBuffer workspace(matmul.workspace_bytes(threads.workers()));
  const Tensor x = random_tensor({load.rows, load.depth}, 1.0f, 3);
  Tensor out(DataType::kF32, {load.rows, load.columns});
  PackedMatmulArgs args;
  args.x = x.view();
  args.out = out.view();
  const PeakBracket peak(threads);
  for (auto _ : state) matmul.run(args, workspace.data(), threads);
  peak.report(state, 2.0 * static_cast<double>(load.rows * load.columns * load.depth));
}

void add(const std::string& name, const PackedLoad& load) {
  at_worker_counts(benchmark::RegisterBenchmark(("packed/" + name).c_str(), packed, load))
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace

void register_packed() {
  for (const std::int64_t rows : {1, 8, 36, 128, 384, 1536}) {
    const std::string m = "M:" + std::to_string(rows) + "/";
    add(m + "384x384", {rows, 384, 384});
    add(m + "768x2304", {rows, 2304, 768});
    add(m + "768x3072", {rows, 3072, 768});
    add(m + "768x3072/bias_gelu", {rows, 3072, 768, Activation::kGelu, true});
    add(m + "3072x768", {rows, 768, 3072});
    add(m + "1024x1024", {rows, 1024, 1024});
  }
  add("M:1/4096x4096/f32", {1, 4096, 4096});
  add("M:1/4096x4096/bf16", {1, 4096, 4096, Activation::kNone, false, DataType::kBF16});
}

}  // namespace headway::perf
