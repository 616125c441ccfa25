// Decoding: one query over a long cache, where memory is the limit. Caches lie cold: so many of them take turns that
// none is still in a cache when it comes again. %read is bytes of key and value over the best plain read of as much
// memory, measured before and after.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "headway/attention.h"
#include "perf/layer.h"

namespace headway::perf {
namespace {

constexpr std::int64_t kHeads = 32, kKeyLen = 4096, kHeadDim = 128;
constexpr std::size_t kColdBytes = std::size_t{768} << 20;  // of all caches together

struct DecodeSize {
  DataType type;
  std::int64_t kv_heads;
};

void decode(benchmark::State& state, const DecodeSize& size, int workers) {
  const Threads threads = Threads::openmp(workers);
  AttentionSpec spec;
  spec.type = size.type;
  spec.num_heads = kHeads;
  spec.num_kv_heads = size.kv_heads;
  spec.query_len = 1;
  spec.key_len = kKeyLen;
  spec.head_dim = kHeadDim;
  const Attention attention(spec);
  const AlignedBuffer workspace(attention.workspace_bytes(workers));

  const Dims cache = {1, size.kv_heads, kKeyLen, kHeadDim};
  const std::size_t bytes = 2 * tensor_bytes(size.type, cache);
  std::vector<Tensor> keys, values;
  for (std::uint32_t i = 0; i < std::max<std::size_t>(kColdBytes / bytes, 2); ++i) {
    keys.push_back(in_type(size.type, random_tensor(cache, 1.7f, 2 * i + 1)));
    values.push_back(in_type(size.type, random_tensor(cache, 1.7f, 2 * i + 2)));
  }
  const Tensor query = in_type(size.type, random_tensor({1, kHeads, 1, kHeadDim}, 1.7f, 77));
  Tensor out(size.type, {1, kHeads, 1, kHeadDim});
  AttentionArgs args;
  args.query = query.view();
  args.out = out.view();

  const std::size_t read_bytes = kColdBytes / static_cast<std::size_t>(workers);
  const double before = measure_read_bandwidth(threads, read_bytes);
  std::size_t turn = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    args.key = std::as_const(keys[turn]).view();
    args.value = std::as_const(values[turn]).view();
    attention.run(args, workspace.data(), threads);
    turn = (turn + 1) % keys.size();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const double best = std::max(before, measure_read_bandwidth(threads, read_bytes));
  const double rate = static_cast<double>(bytes) * static_cast<double>(state.iterations()) / elapsed.count();
  state.counters["GB/s"] = rate * 1e-9;
  state.counters["%read"] = 100 * rate / best;
  state.SetLabel(std::string(attention.implementation()));
}

}  // namespace

void register_decode() {
  const int all = Threads::openmp().workers();
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    for (const std::int64_t kv_heads : {32, 8}) {
      for (int workers = 1; workers <= all; workers += all > 1 ? all - 1 : 1) {
        const std::string text = "decode/" + std::string(type_name(type)) +
                                 "/32x128/Skv:4096/kv_heads:" + std::to_string(kv_heads) +
                                 "/workers:" + std::to_string(workers);
        benchmark::RegisterBenchmark(text.c_str(), decode, DecodeSize{type, kv_heads}, workers)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace headway::perf
