// headway_cached_soak [steps [seed]]: the scheduler of a decoder engine in small. Sequences are admitted, prefilled in
// chunks, decoded, finished and evicted at random over one paged cache, a ragged batch per step. Each finished sequence
// must have the bits that it has alone, in one prefill over a cache of its own; blocks must be conserved and memory
// stay where it was after the first tenth of the steps. Exit 1 where not.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "headway/cached_attention.h"
#include "tests/runtime/sanitizers.h"
#include "tests/soak/resident_bytes.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kHeads = 4, kKvHeads = 2, kDim = 16;
constexpr std::int64_t kBlock = 4, kBlocks = 64, kMaxLength = 96, kMaxBatch = 8, kMaxTokens = 32;
constexpr double kMaxGrowthBytes = 4e6;

using Row = std::array<float, (kHeads + 2 * kKvHeads) * kDim>;  // query, key, value of a token

Row row_of(std::uint64_t sequence, std::int64_t position) {
  Random random(sequence * 1000003 + static_cast<std::uint64_t>(position));
  Row row;
  for (float& x : row) x = static_cast<float>(random.uniform() * 2 - 1);
  return row;
}

std::uint64_t hashed(std::uint64_t hash, const float* out) {  // [Hq, D]
  const auto* bytes = reinterpret_cast<const unsigned char*>(out);
  for (std::size_t i = 0; i < kHeads * kDim * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

CachedAttentionSpec spec_of_model() {
  CachedAttentionSpec spec;
  spec.num_heads = kHeads, spec.num_kv_heads = kKvHeads, spec.head_dim = kDim;
  spec.window.left = 40;
  spec.batch_invariant = true;
  spec.max_batch = kMaxBatch, spec.max_tokens = kMaxLength, spec.max_cache = kMaxLength;
  return spec;
}

struct Sequence {
  std::uint64_t id;
  std::int64_t length;  // when it is finished
  std::int64_t done = 0;
  std::uint64_t hash = 0;
  std::vector<std::int32_t> blocks;
};

/// Rows of one call, packed.
struct Rows {
  explicit Rows(std::int64_t count)
      : tokens(count), query(static_cast<std::size_t>(count * kHeads * kDim)), out(query.size()) {
    key.resize(static_cast<std::size_t>(tokens * kKvHeads * kDim));
    value.resize(key.size());
  }
  void set(std::int64_t t, const Row& row) {
    const auto part = [&](std::int64_t from, std::vector<float>& to, std::int64_t heads) {
      std::copy_n(row.data() + from, heads * kDim, to.data() + t * heads * kDim);
    };
    part(0, query, kHeads);
    part(kHeads * kDim, key, kKvHeads);
    part((kHeads + kKvHeads) * kDim, value, kKvHeads);
  }
  /// Appends, then attends.
  void run(const CachedAttention& attention, const KvCache& cache, const std::vector<std::int32_t>& starts,
           const std::vector<std::int32_t>& lengths, std::byte* workspace, const Threads& threads) {
    const auto batch = static_cast<std::int64_t>(lengths.size());
    AppendArgs rows;
    rows.key = view_of(static_cast<const float*>(key.data()), {tokens, kKvHeads, kDim});
    rows.value = view_of(static_cast<const float*>(value.data()), {tokens, kKvHeads, kDim});
    rows.query_starts = view_of(starts.data(), {batch + 1});
    rows.lengths = view_of(lengths.data(), {batch});
    append(rows, cache, threads);
    CachedAttentionArgs args;
    args.query = view_of(static_cast<const float*>(query.data()), {tokens, kHeads, kDim});
    args.query_starts = rows.query_starts, args.lengths = rows.lengths, args.cache = cache;
    args.out = view_of(out.data(), {tokens, kHeads, kDim});
    attention.run(args, workspace, threads);
  }
  std::int64_t tokens;
  std::vector<float> query, key, value, out;
};

class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed)
      : random_(seed),
        attention_(spec_of_model()),
        workspace_(attention_.workspace_bytes(2)),
        key_(DataType::kF32, {kBlocks, kKvHeads, kBlock, kDim}),
        value_(DataType::kF32, {kBlocks, kKvHeads, kBlock, kDim}),
        free_(kBlocks) {
    std::iota(free_.begin(), free_.end(), 0);
  }

  void step() {
    while (active_.size() < kMaxBatch && random_.chance(0.4)) {
      active_.push_back({next_id_++, random_.between(1, kMaxLength), 0, 0, {}});
      ++admitted;
    }
    if (!active_.empty() && random_.chance(0.01)) evict(pick());
    std::vector<std::int64_t> tokens = choose_tokens();
    if (active_.empty()) return;
    run(tokens);
    for (std::size_t i = active_.size(); i-- > 0;) {
      if (active_[i].done < active_[i].length) continue;
      if (active_[i].hash != alone(active_[i])) ++wrong;
      ++finished;
      release(i);
    }
  }

  bool blocks_are_conserved() const {
    std::vector<int> owners(kBlocks, 0);
    for (const std::int32_t block : free_) ++owners[static_cast<std::size_t>(block)];
    for (const Sequence& sequence : active_) {
      for (const std::int32_t block : sequence.blocks) ++owners[static_cast<std::size_t>(block)];
    }
    return std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; });
  }

  long admitted = 0, finished = 0, evicted = 0, wrong = 0;

 private:
  std::size_t pick() { return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(active_.size()))); }
  void release(std::size_t i) {
    // In any order, so that tables get shuffled.
    for (const std::int32_t block : active_[i].blocks) {
      free_.insert(free_.begin() + random_.below(static_cast<std::int64_t>(free_.size()) + 1), block);
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void evict(std::size_t i) {
    release(i);
    ++evicted;
  }

  /// Tokens of each sequence in this step, with blocks for them; who gets none is left out, or gives way.
  std::vector<std::int64_t> choose_tokens() {
    std::vector<std::int64_t> tokens;
    std::int64_t left = kMaxTokens;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      Sequence& sequence = active_[i];
      const std::int64_t chunk = random_.chance(0.7) ? 1 : random_.between(2, 12);
      std::int64_t count = std::min({left, chunk, sequence.length - sequence.done});
      while (static_cast<std::int64_t>(sequence.blocks.size()) * kBlock < sequence.done + count) {
        if (free_.empty()) {
          count = static_cast<std::int64_t>(sequence.blocks.size()) * kBlock - sequence.done;
          break;
        }
        sequence.blocks.push_back(free_.back());
        free_.pop_back();
      }
      tokens.push_back(count);
      left -= count;
    }
    if (!active_.empty() && std::all_of(tokens.begin(), tokens.end(), [](std::int64_t n) { return n == 0; })) {
      evict(pick());
      return choose_tokens();
    }
    return tokens;
  }

  void run(const std::vector<std::int64_t>& tokens) {
    const auto batch = static_cast<std::int64_t>(active_.size());
    std::vector<std::int32_t> starts{0}, lengths, table(static_cast<std::size_t>(batch * kMaxLength / kBlock), -1);
    Rows rows(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}));
    for (std::int64_t b = 0; b < batch; ++b) {
      const Sequence& sequence = active_[static_cast<std::size_t>(b)];
      const std::int64_t count = tokens[static_cast<std::size_t>(b)];
      for (std::int64_t t = 0; t < count; ++t) rows.set(starts.back() + t, row_of(sequence.id, sequence.done + t));
      starts.push_back(starts.back() + static_cast<std::int32_t>(count));
      lengths.push_back(static_cast<std::int32_t>(sequence.done + count));
      std::copy(sequence.blocks.begin(), sequence.blocks.end(), table.begin() + b * kMaxLength / kBlock);
    }
    KvCache cache;
    cache.key = key_.view(), cache.value = value_.view();
    cache.block_table = view_of(static_cast<const std::int32_t*>(table.data()), {batch, kMaxLength / kBlock});
    rows.run(attention_, cache, starts, lengths, workspace_.data(), threads_);
    for (std::int64_t b = 0; b < batch; ++b) {
      Sequence& sequence = active_[static_cast<std::size_t>(b)];
      for (std::int32_t t = starts[b]; t < starts[b + 1]; ++t) {
        sequence.hash = hashed(sequence.hash, rows.out.data() + t * kHeads * kDim);
      }
      sequence.done = lengths[static_cast<std::size_t>(b)];
    }
  }

  /// The hash of a sequence in one prefill over a cache of its own.
  std::uint64_t alone(const Sequence& sequence) const {
    Rows rows(sequence.length);
    for (std::int64_t t = 0; t < sequence.length; ++t) rows.set(t, row_of(sequence.id, t));
    Tensor key(DataType::kF32, {1, kKvHeads, sequence.length, kDim}), value(DataType::kF32, key.dims());
    KvCache cache;
    cache.key = key.view(), cache.value = value.view();
    const auto length = static_cast<std::int32_t>(sequence.length);
    rows.run(attention_, cache, {0, length}, {length}, workspace_.data(), Threads::serial());
    std::uint64_t hash = 0;
    for (std::int64_t t = 0; t < sequence.length; ++t) hash = hashed(hash, rows.out.data() + t * kHeads * kDim);
    return hash;
  }

  Random random_;
  const CachedAttention attention_;
  const AlignedBuffer workspace_;
  Tensor key_, value_;
  const Threads threads_ = Threads::pool(2);
  std::vector<std::int32_t> free_;
  std::vector<Sequence> active_;
  std::uint64_t next_id_ = 1;
};

int soak(long steps, std::uint64_t seed) {
  Scheduler scheduler(seed);
  double warm = 0;
  long lost = 0;
  for (long i = 0; i < steps; ++i) {
    if (i == steps / 10) warm = resident_bytes();
    scheduler.step();
    if (i % 1000 == 0 && !scheduler.blocks_are_conserved()) ++lost;
  }
  if (!scheduler.blocks_are_conserved()) ++lost;
  const double growth = resident_bytes() - warm;
  std::printf("%ld steps, seed %lu: %ld admitted, %ld finished, %ld evicted; %ld wrong, blocks %s; %.1f MB, %+.2f MB\n",
              steps, static_cast<unsigned long>(seed), scheduler.admitted, scheduler.finished, scheduler.evicted,
              scheduler.wrong, lost == 0 ? "conserved" : "lost", (warm + growth) * 1e-6, growth * 1e-6);
  const bool flat = kAddressSanitizer || kThreadSanitizer || growth <= kMaxGrowthBytes;
  return scheduler.wrong == 0 && lost == 0 && scheduler.finished > 0 && flat ? 0 : 1;
}

}  // namespace
}  // namespace headway::testing

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 1000000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (steps < 10) {
    std::fprintf(stderr, "headway_cached_soak: steps is %s, expected at least 10\n", argv[1]);
    return 2;
  }
  return headway::testing::soak(steps, seed);
}
