// A layer as one fused node beside the graph of small operators that it was fused from, in turns within one run: what
// fusion is worth. `gain` is the median of the rounds' ratios, time unfused over time fused.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "headway/fusion.h"
#include "perf/measure.h"
#include "tests/ops/graph/attention/layer_graphs.h"

namespace headway::perf {
namespace {

using testing::GraphLayer;
using testing::LayerSizes;

/// A session with its output, ready to run.
class Contestant {
 public:
  Contestant(Graph graph, const GraphLayer& layer)
      : layer_(layer), session_(std::move(graph), testing::all_ops()), y_(DataType::kF32, layer.x.dims()) {}

  double seconds(const Threads& threads) {
    const ConstTensorView in[] = {layer_.x.view(), layer_.mask.view()};
    const TensorView out[] = {y_.view()};
    const auto begin = std::chrono::steady_clock::now();
    session_.run(in, out, threads);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::vector<float> result() const { return testing::values_of<float>(y_); }

 private:
  const GraphLayer& layer_;
  Session session_;
  Tensor y_;
};

void fused_beside_unfused(benchmark::State& state, const LayerSizes& sizes) {
  const Threads threads = Threads::openmp(static_cast<int>(state.range(0)));
  const GraphLayer layer(sizes);
  const Graph graph = testing::unfused_graph(layer);
  Contestant fused(fuse(graph, testing::all_ops()), layer), unfused(testing::unfused_graph(layer), layer);
  fused.seconds(threads), unfused.seconds(threads);  // plans and packs
  if (testing::worst_difference(fused.result(), unfused.result()) > 1e-3) {
    state.SkipWithError("fused and unfused disagree");
    return;
  }
  std::vector<double> gains;
  double in_fused = 0;
  for (auto _ : state) {
    const double one = fused.seconds(threads);
    gains.push_back(unfused.seconds(threads) / one);
    in_fused += one;
  }
  std::sort(gains.begin(), gains.end());
  state.counters["gain"] = gains[gains.size() / 2];
  state.counters["gain_low"] = gains[gains.size() / 10];
  state.counters["fused_us"] = 1e6 * in_fused / static_cast<double>(gains.size());
}

}  // namespace

void register_fused() {
  constexpr LayerSizes kSizes[] = {{1, 1, 384, 12},    {1, 8, 384, 12},    {1, 32, 768, 12},  {1, 128, 768, 12},
                                   {8, 128, 768, 12},  {1, 512, 768, 12},  {1, 512, 1024, 1}, {1, 512, 1024, 16},
                                   {1, 512, 1024, 64}, {1, 512, 1024, 128}};
  for (const LayerSizes& sizes : kSizes) {
    const std::string name = "fused/B:" + std::to_string(sizes.batch) + "/S:" + std::to_string(sizes.length) +
                             "/E:" + std::to_string(sizes.width) + "/heads:" + std::to_string(sizes.heads);
    at_worker_counts(benchmark::RegisterBenchmark(name.c_str(), fused_beside_unfused, sizes))
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
}

}  // namespace headway::perf
