// Small work: layers of a few tokens, where what a call costs beyond its arithmetic shows. over_us is the time beyond
// what the same flops take at the FMA peak; the smallest layer of all is next to nothing but that.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/multi_head_attention.h"
#include "headway/register_ops.h"
#include "headway/session.h"
#include "perf/measure.h"

namespace headway::perf {
namespace {

struct SmallSize {
  std::int64_t seq;
  std::int64_t embed_dim;
  std::int64_t num_heads;
};

/// One layer of one size: the plan alone, and a session whose graph has nothing else.
class SmallLayer {
 public:
  explicit SmallLayer(const SmallSize& size) : x_(random_tensor({1, size.seq, size.embed_dim}, 1.7f, 5)) {
    const float range = 1.7f / std::sqrt(static_cast<float>(size.embed_dim));
    for (std::uint32_t i = 0; i < 4; ++i) {
      weights_.push_back(std::make_shared<const Tensor>(random_tensor({size.embed_dim, size.embed_dim}, range, i + 1)));
    }
    MultiHeadAttentionSpec spec;
    spec.query_len = size.seq;
    spec.embed_dim = size.embed_dim;
    spec.num_heads = size.num_heads;
    spec.self_attention = true;
    MultiHeadAttentionWeights weights;
    weights.query = weights_[0]->view();
    weights.key = weights_[1]->view();
    weights.value = weights_[2]->view();
    weights.output = weights_[3]->view();
    layer_ = std::make_unique<MultiHeadAttention>(spec, weights);
    out_ = Tensor(DataType::kF32, x_.dims());
    args_.query = args_.key = args_.value = std::as_const(x_).view();
    args_.out = out_.view();

    register_ops(&registry_);
    Graph graph;
    const ValueId absent = kNoValue;
    std::vector<ValueId> inputs = {graph.add_input("x", DataType::kF32, {1, size.seq, size.embed_dim}), absent, absent};
    for (std::size_t i = 0; i < 4; ++i) {
      inputs.push_back(graph.add_constant("w" + std::to_string(i), weights_[i]));
    }
    graph.add_output("y", graph.add_node("MultiHeadAttention", "layer", inputs, {{"num_heads", size.num_heads}}));
    session_ = std::make_unique<Session>(std::move(graph), registry_);
  }

  const MultiHeadAttention& layer() const { return *layer_; }
  const MultiHeadAttentionArgs& args() const { return args_; }
  void run_session(const Threads& threads) {
    const ConstTensorView in[] = {args_.query};
    const TensorView out[] = {args_.out};
    session_->run(in, out, threads);
  }

 private:
  std::vector<std::shared_ptr<const Tensor>> weights_;
  Tensor x_, out_;
  std::unique_ptr<MultiHeadAttention> layer_;
  MultiHeadAttentionArgs args_;
  Registry registry_;
  std::unique_ptr<Session> session_;
};

template <class Run>
void measure(benchmark::State& state, const SmallLayer& small, int workers, Run run) {
  const Threads threads = Threads::openmp(workers);
  run(threads);
  const double flops =
      static_cast<double>(small.layer().projection_flops() + nominal_attention_flops(small.layer().core().spec()));
  const PeakBracket peak(threads);
  for (auto _ : state) run(threads);
  peak.report(state, flops);
  const double at_peak = flops / (state.counters["peak"].value * 1e9);
  state.counters["over_us"] = 1e6 * (flops / (state.counters["GF/s"].value * 1e9) - at_peak);
  state.SetLabel(std::string(small.layer().core().implementation()));
}

void direct(benchmark::State& state, const SmallSize& size, int workers) {
  const SmallLayer small(size);
  const AlignedBuffer workspace(small.layer().workspace_bytes(workers));
  measure(state, small, workers,
          [&](const Threads& threads) { small.layer().run(small.args(), workspace.data(), threads); });
}

void in_session(benchmark::State& state, const SmallSize& size, int workers) {
  SmallLayer small(size);
  measure(state, small, workers, [&](const Threads& threads) { small.run_session(threads); });
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
