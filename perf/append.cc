// Appending projected rows to a cache: rotation of queries and keys, norm, conversion. Rows and caches lie cold: so
// many of them take turns that none is still in a cache when it comes again. "copy" moves as many bytes of as many
// arrays with memcpy: what append cannot beat.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "headway/kv_cache.h"
#include "perf/measure.h"

namespace headway::perf {
namespace {

constexpr std::int64_t kTokens = 512, kHeads = 32, kKvHeads = 8, kHeadDim = 128;
constexpr std::int64_t kTurns = 24;  // of 12 MiB and more each

struct AppendLoad {
  DataType cache_type;
  std::int64_t block;  // 0: contiguous
  bool norm;
};

/// What one call reads and writes: queries in place, keys and values from rows to the cache.
struct AppendTurn {
  explicit AppendTurn(const AppendLoad& load, std::uint32_t seed)
      : query(random_tensor({kTokens, kHeads, kHeadDim}, 1.7f, seed)),
        key(random_tensor({kTokens, kKvHeads, kHeadDim}, 1.7f, seed + 1)),
        value(random_tensor({kTokens, kKvHeads, kHeadDim}, 1.7f, seed + 2)),
        key_cache(load.cache_type, cache_dims(load)),
        value_cache(load.cache_type, cache_dims(load)) {}

  static Dims cache_dims(const AppendLoad& load) {
    const std::int64_t rows = load.block > 0 ? load.block : kTokens;
    return {kTokens / rows, kKvHeads, rows, kHeadDim};
  }

  Tensor query, key, value, key_cache, value_cache;
};

double bytes_of(const AppendTurn& turn) {
  double bytes = 2.0 * 4.0 * static_cast<double>(turn.query.count());  // read and written
  for (const Tensor* tensor : {&turn.key, &turn.value, &turn.key_cache, &turn.value_cache}) {
    bytes += static_cast<double>(tensor_bytes(tensor->type(), tensor->dims()));
  }
  return bytes;
}

void append_rows(benchmark::State& state, const AppendLoad& load) {
  const Threads threads = Threads::pool(static_cast<int>(state.range(0)));
  std::vector<AppendTurn> turns;
  for (std::uint32_t i = 0; i < kTurns; ++i) turns.emplace_back(load, 3 * i + 1);
  const RotaryTable rotary({.rotary_dim = kHeadDim, .positions = kTokens, .scaling = {}});
  const std::vector<std::int32_t> starts = {0, kTokens}, lengths = {kTokens};
  std::vector<std::int32_t> table;
  for (std::int32_t b = 0; load.block > 0 && b < kTokens / load.block; ++b) table.push_back(b);
  std::size_t at = 0;
  for (auto _ : state) {
    AppendTurn& turn = turns[at++ % turns.size()];
    AppendArgs args;
    args.key = std::as_const(turn.key).view();
    args.value = std::as_const(turn.value).view();
    args.query_starts = view_of(starts.data(), {2});
    args.lengths = view_of(lengths.data(), {1});
    args.query = turn.query.view();
    args.rotary = &rotary;
    args.norm.enabled = load.norm;
    KvCache cache;
    cache.key = turn.key_cache.view();
    cache.value = turn.value_cache.view();
    if (load.block > 0) cache.block_table = view_of(table.data(), {1, static_cast<std::int64_t>(table.size())});
    append(args, cache, threads);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes_of(turns[0])) * state.iterations());
}

/// The same arrays, each copied where append would write it; queries to the place of others' queries.
void copy_rows(benchmark::State& state, const AppendLoad& load) {
  const Threads threads = Threads::pool(static_cast<int>(state.range(0)));
  std::vector<AppendTurn> turns;
  for (std::uint32_t i = 0; i < kTurns; ++i) turns.emplace_back(load, 3 * i + 1);
  std::size_t at = 0;
  constexpr std::int64_t kParts = 16;
  const auto part_of = [](Tensor& to, const Tensor& from, std::int64_t part) {
    const std::size_t bytes = tensor_bytes(to.type(), to.dims()) / kParts;
    std::memcpy(to.view().data + part * bytes, from.view().data + part * bytes, bytes);
  };
  for (auto _ : state) {
    AppendTurn& turn = turns[at % turns.size()];
    const AppendTurn& other = turns[(at + turns.size() / 2) % turns.size()];
    ++at;
    threads.parallel_for(kParts, [&](std::int64_t part, int) {
      part_of(turn.query, other.query, part);
      part_of(turn.key_cache, turn.key, part);
      part_of(turn.value_cache, turn.value, part);
    });
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes_of(turns[0])) * state.iterations());
}

void add(const std::string& name, const AppendLoad& load, void (*run)(benchmark::State&, const AppendLoad&)) {
  at_worker_counts(benchmark::RegisterBenchmark(("append/" + name).c_str(), run, load))
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace

void register_append() {
  add("copy", {DataType::kF32, 0, false}, copy_rows);
  add("f32", {DataType::kF32, 0, false}, append_rows);
  add("f32/norm", {DataType::kF32, 0, true}, append_rows);
  add("f32/paged:16", {DataType::kF32, 16, false}, append_rows);
  add("bf16", {DataType::kBF16, 0, false}, append_rows);
  add("f16/paged:16", {DataType::kF16, 16, false}, append_rows);
}

}  // namespace headway::perf
