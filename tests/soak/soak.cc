// headway_soak [seconds [seed]]: random shapes through one session and through attention objects that come and go, from
// several callers on a shared pool, for as long as it is told to. Every result must have the bits of the first run of
// its shape, and memory must stay where it was after the first tenth of the time (a sanitizer keeps what was freed, so
// there the growth is only printed). Exit 1 where not.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "headway/attention.h"
#include "headway/fusion.h"
#include "headway/session.h"
#include "tests/robustness/layer_graph.h"
#include "tests/runtime/sanitizers.h"
#include "tests/soak/resident_bytes.h"

namespace headway::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallers = 3;
constexpr int kShapes = 64;              // for a plan cache of 4
constexpr double kMaxGrowthBytes = 8e6;  // arenas of malloc, a thread each, settle late

std::uint64_t hash_of(const ConstTensorView& view) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const std::size_t bytes = static_cast<std::size_t>(view.count()) * size_bytes(view.type);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ std::to_integer<std::uint64_t>(view.data[i])) * 0x100000001b3u;
  return hash;
}

class Soak {
 public:
  explicit Soak(std::uint64_t seed)
      : session_(fuse(layer_graph(), all_operators()), all_operators(), {4}),
        x_(random_floats({2, kShapes, 16}, seed)),
        values_(random_floats({2, 4, 80, 32}, seed + 1)) {
    Random random(seed);
    for (int i = 0; i < kShapes; ++i) {
      AttentionSpec spec;
      spec.batch = random.between(1, 2);
      spec.num_heads = 4;
      spec.num_kv_heads = random.chance(0.5) ? 4 : 2;
      spec.query_len = random.between(1, 80);
      spec.key_len = random.between(1, 80);
      spec.head_dim = random.between(1, 32);
      spec.causal = random.chance(0.5) ? Causal::kBottomRight : Causal::kNone;
      specs_.push_back(spec);
    }
    for (int i = 0; i < kShapes; ++i) {
      expected_.push_back(run_session(i, Threads::serial()));
      expected_.push_back(run_attention(i, Threads::serial()));
    }
  }

  /// Until `end`; one of several callers.
  void call(std::uint64_t seed, Clock::time_point end) {
    Random random(seed);
    while (Clock::now() < end) {
      const auto i = static_cast<int>(random.between(0, kShapes - 1));
      const bool attention = random.chance(0.5);
      const Threads& threads = random.chance(0.8) ? pool_ : serial_;
      const std::uint64_t hash = attention ? run_attention(i, threads) : run_session(i, threads);
      if (hash != expected_[static_cast<std::size_t>(2 * i + (attention ? 1 : 0))]) ++wrong;
      ++runs;
    }
  }

  std::atomic<long> runs{0};
  std::atomic<long> wrong{0};

 private:
  std::uint64_t run_session(int i, const Threads& threads) const {
    const ConstTensorView inputs[] = {{x_.view().data, DataType::kF32, {2, i + 1, 16}}};
    return hash_of(session_.run(inputs, threads)[0].view());
  }
  std::uint64_t run_attention(int i, const Threads& threads) const {
    const AttentionSpec& spec = specs_[static_cast<std::size_t>(i)];
    const Attention attention(spec);
    const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
    Tensor out(DataType::kF32, {spec.batch, spec.num_heads, spec.query_len, spec.head_dim});
    const auto view = [&](std::int64_t heads, std::int64_t length) {
      return ConstTensorView(values_.view().data, DataType::kF32, {spec.batch, heads, length, spec.head_dim});
    };
    AttentionArgs args;
    args.query = view(spec.num_heads, spec.query_len);
    args.key = args.value = view(spec.num_kv_heads.value_or(spec.num_heads), spec.key_len);
    args.out = out.view();
    attention.run(args, workspace.data(), threads);
    return hash_of(out.view());
  }

  const Session session_;
  const Tensor x_, values_;
  std::vector<AttentionSpec> specs_;
  std::vector<std::uint64_t> expected_;  // session, attention, by shape
  const Threads pool_ = Threads::pool(3);
  const Threads serial_ = Threads::serial();
};

int soak(double seconds, std::uint64_t seed) {
  Soak all(seed);
  const auto begin = Clock::now();
  const auto after = [&](double part) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds * part));
  };
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) callers.emplace_back([&, c] { all.call(seed + 100 + c, after(1)); });
  std::this_thread::sleep_until(after(0.1));
  const double warm = resident_bytes();
  for (std::thread& caller : callers) caller.join();
  const double growth = resident_bytes() - warm;
  std::printf("%ld runs of %d shapes, seed %lu: %ld wrong; %.1f MB resident, %+.2f MB since the first tenth\n",
              all.runs.load(), 2 * kShapes, static_cast<unsigned long>(seed), all.wrong.load(), (warm + growth) * 1e-6,
              growth * 1e-6);
  const bool flat = kAddressSanitizer || kThreadSanitizer || growth <= kMaxGrowthBytes;
  return all.wrong == 0 && flat ? 0 : 1;
}

}  // namespace
}  // namespace headway::testing

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 60;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (seconds <= 0) {
    std::fprintf(stderr, "headway_soak: seconds is %s, expected more than 0\n", argv[1]);
    return 2;
  }
  return headway::testing::soak(seconds, seed);
}
