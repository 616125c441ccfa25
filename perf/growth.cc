// How time and memory grow: against S, B, Skv and threads, one at a time. The counters are what should stay flat, so a
// bend in the growth shows as a step: per_pair is the time of one query-key pair of one head.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "headway/attention.h"
#include "perf/layer.h"
#include "perf/memory.h"

namespace headway::perf {
namespace {

constexpr std::int64_t kHeadDim = 64;

struct CoreSize {
  std::int64_t num_heads;
  std::int64_t query_len;
  std::int64_t key_len;
  bool causal = false;
};

/// The attention core of one size, ready to be planned and run.
class Core {
 public:
  explicit Core(const CoreSize& size)
      : q_(random_tensor({1, size.num_heads, size.query_len, kHeadDim}, 1.7f, 1)),
        k_(random_tensor({1, size.num_heads, size.key_len, kHeadDim}, 1.7f, 2)),
        v_(random_tensor({1, size.num_heads, size.key_len, kHeadDim}, 1.7f, 3)),
        out_(random_tensor({1, size.num_heads, size.query_len, kHeadDim}, 1.7f, 4)) {
    spec_.num_heads = size.num_heads;
    spec_.query_len = size.query_len;
    spec_.key_len = size.key_len;
    spec_.head_dim = kHeadDim;
    spec_.causal = size.causal ? Causal::kTopLeft : Causal::kNone;
    args_.query = std::as_const(q_).view();
    args_.key = std::as_const(k_).view();
    args_.value = std::as_const(v_).view();
    args_.out = out_.view();
  }

  void plan(const Threads& threads) {
    attention_.emplace(spec_);
    workspace_ = AlignedBuffer(attention_->workspace_bytes(threads.workers()));
  }
  void run(const Threads& threads) const { attention_->run(args_, workspace_.data(), threads); }

  const Attention& attention() const { return *attention_; }
  std::size_t workspace_bytes() const { return workspace_.size_bytes(); }

 private:
  Tensor q_, k_, v_, out_;
  AttentionSpec spec_;
  AttentionArgs args_;
  std::optional<Attention> attention_;
  AlignedBuffer workspace_;
};

benchmark::Counter time_of_each(double count) {
  return {count, benchmark::Counter::kIsRate | benchmark::Counter::kInvert};
}

benchmark::Counter in_bytes(double bytes) {
  return {bytes, benchmark::Counter::kDefaults, benchmark::Counter::OneK::kIs1024};
}

void core_time(benchmark::State& state, const CoreSize& size, int workers) {
  const Threads threads = Threads::openmp(workers);
  Core core(size);
  core.plan(threads);
  core.run(threads);
  const double flops = static_cast<double>(nominal_attention_flops(core.attention().spec()));
  const PeakBracket peak(threads);
  for (auto _ : state) core.run(threads);
  peak.report(state, flops);
  // Pairs that the mathematics needs; an inverted rate is the time of one.
  const double pairs = flops / (4.0 * kHeadDim);
  state.counters["per_pair"] = time_of_each(pairs * static_cast<double>(state.iterations()));
  state.SetLabel(std::string(core.attention().implementation()));
}

/// What a plan and its first run add to the process, beside what the plan booked and what a score matrix would take.
void core_memory(benchmark::State& state, const CoreSize& size, int workers) {
  const Threads threads = Threads::openmp(workers);
  // A smaller run first: threads' stacks and the libraries' own pages are not the core's.
  Core warm({1, 128, 128});
  warm.plan(threads);
  warm.run(threads);
  Core core(size);
  for (auto _ : state) {
    const std::int64_t added = peak_added_kib([&] {
      core.plan(threads);
      core.run(threads);
    });
    state.counters["added_bytes"] = in_bytes(1024.0 * static_cast<double>(added));
  }
  const double scores = static_cast<double>(size.num_heads * size.query_len) * static_cast<double>(size.key_len);
  state.counters["workspace_bytes"] = in_bytes(static_cast<double>(core.workspace_bytes()));
  state.counters["scores_bytes"] = in_bytes(scores * sizeof(float));
  state.SetLabel(std::string(core.attention().implementation()));
}

void layer_time(benchmark::State& state, std::int64_t batch, int workers) {
  constexpr std::int64_t kEmbed = 768, kSeq = 128;
  const Threads threads = Threads::openmp(workers);
  const RandomLayer random({batch, kSeq, kEmbed, kEmbed / kHeadDim}, DataType::kF32, workers);
  random.run(threads);
  const PeakBracket peak(threads);
  for (auto _ : state) random.run(threads);
  peak.report(state, random.flops());
  state.counters["per_sequence"] = time_of_each(static_cast<double>(batch * state.iterations()));
  state.SetLabel(std::string(random.layer().core().implementation()));
}

std::string named(const std::string& what, std::int64_t size, int workers) {
  return "growth/" + what + ":" + std::to_string(size) + "/workers:" + std::to_string(workers);
}

template <class... Args>
auto* timed(const std::string& name, Args... args) {
  return benchmark::RegisterBenchmark(name.c_str(), args...)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

}  // namespace

void register_growth() {
  const int all = Threads::openmp().workers();
  for (const bool causal : {false, true}) {
    for (std::int64_t s = 128; s <= 16384; s *= 2) {
      timed(named(causal ? "causal/S" : "full/S", s, all), core_time, CoreSize{4, s, s, causal}, all);
    }
  }
  for (std::int64_t s = 128; s <= 16384; s *= 2) {
    // One iteration: what the first run adds is the question.
    timed(named("memory/S", s, all), core_memory, CoreSize{4, s, s}, all)->Iterations(1);
  }
  for (const std::int64_t sq : {1, 128}) {
    for (std::int64_t skv = 128; skv <= 16384; skv *= 2) {
      timed(named("Sq:" + std::to_string(sq) + "/Skv", skv, all), core_time, CoreSize{12, sq, skv}, all);
    }
  }
  for (std::int64_t b = 1; b <= 16; b *= 2) timed(named("layer/B", b, all), layer_time, b, all);
  for (int workers = 1; workers <= all; workers = workers < all ? std::min(2 * workers, all) : all + 1) {
    timed(named("threads/S", 512, workers), core_time, CoreSize{12, 512, 512}, workers);
    timed(named("threads/layer/B", 1, workers), layer_time, std::int64_t{1}, workers);
  }
}

}  // namespace headway::perf
