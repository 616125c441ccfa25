// Small work: layers of a few tokens, where what a call costs beyond its arithmetic shows. over_us is the time beyond
// what the same flops take at the FMA peak; the smallest layer of all is next to nothing but that.
#include <benchmark/benchmark.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headway/register_ops.h"
#include "headway/session.h"
#include "perf/layer.h"

namespace headway::perf {
namespace {

struct SmallSize {
  std::int64_t seq;
  std::int64_t embed_dim;
  std::int64_t num_heads;
};

/// A session whose graph has the layer and nothing else.
class LayerSession {
 public:
  LayerSession(const RandomLayer& random, const SmallSize& size) : random_(random) {
    register_ops(&registry_);
    Graph graph;
    const ValueId x = graph.add_input("x", DataType::kF32, {1, size.seq, size.embed_dim});
    std::vector<ValueId> inputs = {x, kNoValue, kNoValue};
    for (const auto& weight : random.weights()) {
      inputs.push_back(graph.add_constant("w" + std::to_string(inputs.size()), weight));
    }
    graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, {{"num_heads", size.num_heads}}));
    session_.emplace(std::move(graph), registry_);
  }

  void run(const Threads& threads) const {
    const ConstTensorView in[] = {random_.args().query};
    const TensorView out[] = {random_.args().out};
    session_->run(in, out, threads);
  }

 private:
  const RandomLayer& random_;
  Registry registry_;
  std::optional<Session> session_;
};

template <class Run>
void measure(benchmark::State& state, const RandomLayer& random, const Threads& threads, Run run) {
  run();
  const PeakBracket peak(threads);
  for (auto _ : state) run();
  peak.report(state, random.flops());
  const double at_peak = random.flops() / (state.counters["peak"].value * 1e9);
  state.counters["over_us"] = 1e6 * (random.flops() / (state.counters["GF/s"].value * 1e9) - at_peak);
  state.SetLabel(std::string(random.layer().core().implementation()));
}

RandomLayer layer_of(const SmallSize& size, int workers) {
  return {{1, size.seq, size.embed_dim, size.num_heads}, DataType::kF32, workers};
}

void direct(benchmark::State& state, const SmallSize& size, int workers) {
  const Threads threads = Threads::openmp(workers);
  const RandomLayer random = layer_of(size, workers);
  measure(state, random, threads, [&] { random.run(threads); });
}

void in_session(benchmark::State& state, const SmallSize& size, int workers) {
  const Threads threads = Threads::openmp(workers);
  const RandomLayer random = layer_of(size, workers);
  const LayerSession session(random, size);
  measure(state, random, threads, [&] { session.run(threads); });
}

}  // namespace

void register_small() {
  std::vector<SmallSize> sizes = {{1, 8, 1}};
  for (const std::int64_t embed_dim : {128, 384, 768}) {
    for (const std::int64_t seq : {1, 4, 8, 16, 32}) sizes.push_back({seq, embed_dim, embed_dim / 64});
  }
  const int all = Threads::openmp().workers();
  for (const SmallSize& size : sizes) {
    for (int workers = 1; workers <= all; workers += all > 1 ? all - 1 : 1) {
      const std::string name = "/S:" + std::to_string(size.seq) + "/E:" + std::to_string(size.embed_dim) +
                               "/h:" + std::to_string(size.num_heads) + "/workers:" + std::to_string(workers);
      const auto timed = [&](const std::string& what, auto run) {
        benchmark::RegisterBenchmark((what + name).c_str(), run, size, workers)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      };
      timed("small/layer", direct);
      timed("small/session", in_session);
    }
  }
}

}  // namespace headway::perf
