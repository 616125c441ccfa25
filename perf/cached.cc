// Attention over a key/value cache: decoding over long caches, contiguous and paged, with capacity to spare, and a
// prefill chunk beside decodes. Caches are warm: what is compared is the same work on other layouts in one run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "headway/cached_attention.h"
#include "perf/measure.h"

namespace headway::perf {
namespace {

struct CachedLoad {
  std::int64_t kv_heads;
  std::int64_t group;     // query heads per key/value head
  std::int64_t block;     // 0: contiguous
  std::int64_t capacity;  // positions per slot or table
  std::vector<std::int32_t> tokens, lengths;
  DataType cache_type = DataType::kF32;
  bool batch_invariant = false;
};

constexpr std::int64_t kHeadDim = 128;

/// Blocks of all sequences, spread over the cache.
std::vector<std::int32_t> spread_blocks(std::int64_t batch, std::int64_t per_sequence) {
  std::vector<std::int32_t> table;
  const std::int64_t blocks = batch * per_sequence;
  std::int64_t step = blocks * 5 / 8 | 1;
  const auto common = [](std::int64_t a, std::int64_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
  };
  while (common(step, blocks) != 1) step += 2;
  for (std::int64_t i = 0; i < blocks; ++i) table.push_back(static_cast<std::int32_t>(i * step % blocks));
  return table;
}

void cached(benchmark::State& state, const CachedLoad& load) {
  const Threads threads = Threads::pool(static_cast<int>(state.range(0)));
  const auto batch = static_cast<std::int64_t>(load.lengths.size());
  std::vector<std::int32_t> starts = {0};
  std::int64_t pairs = 0;
  for (std::size_t b = 0; b < load.lengths.size(); ++b) {
    starts.push_back(starts.back() + load.tokens[b]);
    const std::int64_t tokens = load.tokens[b], length = load.lengths[b];
    pairs += tokens * length - tokens * (tokens - 1) / 2;
  }
  CachedAttentionSpec spec;
  spec.cache_type = load.cache_type;
  spec.num_heads = load.kv_heads * load.group;
  spec.num_kv_heads = load.kv_heads;
  spec.head_dim = kHeadDim;
  spec.batch_invariant = load.batch_invariant;
  spec.max_batch = batch;
  spec.max_tokens = starts.back();
  spec.max_cache = load.capacity;
  const CachedAttention attention(spec);
  const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));

  const std::int64_t per_sequence = load.block > 0 ? (load.capacity + load.block - 1) / load.block : 1;
  const std::int64_t rows = load.block > 0 ? load.block : load.capacity;
  const Dims dims = {batch * per_sequence, load.kv_heads, rows, kHeadDim};
  Tensor key = in_type(load.cache_type, random_tensor(dims, 1.7f, 1));
  Tensor value = in_type(load.cache_type, random_tensor(dims, 1.7f, 2));
  const Tensor query = random_tensor({starts.back(), spec.num_heads, kHeadDim}, 1.7f, 3);
  Tensor out(DataType::kF32, query.dims());
  const std::vector<std::int32_t> table = spread_blocks(batch, per_sequence);
  CachedAttentionArgs args;
  args.query = query.view();
  args.query_starts = view_of(std::as_const(starts).data(), {batch + 1});
  args.lengths = view_of(load.lengths.data(), {batch});
  args.cache.key = key.view();
  args.cache.value = value.view();
  if (load.block > 0) args.cache.block_table = view_of(table.data(), {batch, per_sequence});
  args.out = out.view();

  const PeakBracket peak(threads);
  for (auto _ : state) attention.run(args, workspace.data(), threads);
  peak.report(state, 4.0 * kHeadDim * static_cast<double>(spec.num_heads * pairs));
  const CachedAttentionPlan plan = attention.plan(args);
  state.SetLabel(std::to_string(plan.tasks) + " tasks, " + std::to_string(plan.few_query_tasks) + " of few queries");
}

void add(const std::string& name, const CachedLoad& load) {
  at_worker_counts(benchmark::RegisterBenchmark(("cached/" + name).c_str(), cached, load))
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

std::string layout(std::int64_t block) { return block > 0 ? "paged:" + std::to_string(block) : "contiguous"; }

}  // namespace

void register_cached() {
  for (const std::int32_t length : {2048, 8192, 32768}) {
    for (const std::int64_t kv_heads : {1, 2, 8}) {
      const std::string shape = "decode/kv_heads:" + std::to_string(kv_heads) + "/n:" + std::to_string(length) + "/";
      for (const std::int64_t block : {0, 16, 64}) {
        add(shape + layout(block), {kv_heads, 4, block, length, {1}, {length}});
      }
      add(shape + "capacity:x4", {kv_heads, 4, 0, std::int64_t{4} * length, {1}, {length}});
      add(shape + "invariant", {kv_heads, 4, 0, length, {1}, {length}, DataType::kF32, true});
    }
  }
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    for (const std::int64_t block : {0, 16}) {
      add("decode/kv_heads:8/n:8192/" + std::string(type_name(type)) + "/" + layout(block),
          {8, 4, block, 8192, {1}, {8192}, type});
    }
  }
  // One prefill chunk of 256 tokens and 31 decodes in one call.
  std::vector<std::int32_t> tokens(32, 1), lengths(32, 1024);
  tokens[0] = 256;
  for (const std::int64_t block : {0, 16, 64}) {
    add("mixed/256+31/" + layout(block), {8, 4, block, 1024, tokens, lengths});
  }
  add("mixed/256+31/invariant", {8, 4, 0, 1024, tokens, lengths, DataType::kF32, true});
  for (const std::int64_t block : {0, 16, 64})
    add("prefill/2048/" + layout(block), {8, 4, block, 2048, {2048}, {2048}});
  add("prefill/2048/invariant", {8, 4, 0, 2048, {2048}, {2048}, DataType::kF32, true});
}

}  // namespace headway::perf
