// The yardsticks: a register-only FMA loop, and a plain read in two patterns.
// clang-format off
#include "ops/simd/targets_config.h"
// clang-format on
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/measure/peak/peak.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "ops/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headway {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// `steps` steps of the widest tile on registers alone; returns the products done. Twelve accumulators or more cover
/// the latency of two FMA units; the operands are loaded once, so nothing but FMA units can be the limit.
template <class Product>
double ProductLoop(std::int64_t steps, const float* operands, float* sink) {
  const TileTag d;
  constexpr int kRows = TileRows(kTileVectors);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const TileVector b0 = hn::LoadU(d, operands);
  const TileVector b1 = hn::LoadU(d, operands + lanes);
  const TileVector b2 = hn::LoadU(d, operands + 2 * lanes);
  const TileVector a = hn::Set(d, operands[3 * lanes]);
  Tile<kRows, kTileVectors> tile;
  tile.Clear();
  for (std::int64_t i = 0; i < steps; ++i) {
    tile.ForEachRow([&](int, TileRow& row) HWY_ATTR {
      Product::Add(a, b0, row.c0);
      Product::Add(a, b1, row.c1);
      Product::Add(a, b2, row.c2);
    });
  }
  TileVector sum = hn::Zero(d);
  tile.ForEachRow([&](int, TileRow& row) HWY_ATTR { sum = hn::Add(sum, hn::Add(row.c0, hn::Add(row.c1, row.c2))); });
  hn::StoreU(sum, d, sink);
  return static_cast<double>(steps * kRows * kTileVectors * lanes);
}

double FmaLoop(std::int64_t steps, const float* operands, float* sink) {
  return 2.0 * ProductLoop<F32Product>(steps, operands, sink);
}

/// Flops of products of bf16 pairs; 0 where the target has none.
double PairLoop([[maybe_unused]] std::int64_t steps, [[maybe_unused]] const float* operands,
                [[maybe_unused]] float* sink) {
#if HEADWAY_HAS_BF16_PRODUCT
  return 4.0 * ProductLoop<Bf16Product>(steps, operands, sink);
#else
  return 0;
#endif
}

/// Sums `floats` floats as `streams` streams side by side.
float ReadLoop(const float* HWY_RESTRICT data, std::int64_t floats, int streams) {
  const TileTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t part = floats / streams / (4 * lanes) * (4 * lanes);
  TileVector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  if (streams == 1) {
    for (std::int64_t i = 0; i < part; i += 4 * lanes) {
      s0 = hn::Add(s0, hn::LoadU(d, data + i));
      s1 = hn::Add(s1, hn::LoadU(d, data + i + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, data + i + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, data + i + 3 * lanes));
    }
  } else {
    for (std::int64_t i = 0; i < part; i += lanes) {
      s0 = hn::Add(s0, hn::LoadU(d, data + i));
      s1 = hn::Add(s1, hn::LoadU(d, data + part + i));
      s2 = hn::Add(s2, hn::LoadU(d, data + 2 * part + i));
      s3 = hn::Add(s3, hn::LoadU(d, data + 3 * part + i));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace headway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "headway/tensor.h"
#include "ops/simd/target.h"
#include "tools/measure/peak/peak.h"

namespace headway {
HWY_EXPORT(FmaLoop);
HWY_EXPORT(PairLoop);
HWY_EXPORT(ReadLoop);

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Units of `loop(worker)` a second, all workers together. They start within one parallel loop; each runs pieces
/// until the time is over, and its own rate counts, so that a late start costs nothing.
template <class Loop>
double rate(const Threads& threads, double seconds, Loop loop) {
  const int workers = threads.workers();
  std::vector<double> rates(static_cast<std::size_t>(workers), 0.0);
  std::atomic<int> started{0};
  threads.parallel_for(workers, [&](std::int64_t task, int) {
    // With fewer threads than workers the tasks run one after another; do not wait for the others then.
    const double arrived = seconds_now();
    ++started;
    while (started.load() < workers && seconds_now() - arrived < 0.01) {
    }
    double units = 0;
    const double begin = seconds_now();
    double now = begin;
    do {
      units += loop(task);
      now = seconds_now();
    } while (now - begin < seconds);
    rates[static_cast<std::size_t>(task)] = units / (now - begin);
  });
  double sum = 0;
  for (double r : rates) sum += r;
  return sum;
}

/// Flops a second of `loop(steps, operands, sink)`.
template <class Loop>
double product_rate(const Threads& threads, double seconds, Loop loop) {
  constexpr std::int64_t kSteps = 20000;
  const std::vector<float> operands(256, 1e-6f);
  std::vector<float> sinks(static_cast<std::size_t>(threads.workers()) * 64);
  return rate(threads, seconds,
              [&](std::int64_t task) { return loop(kSteps, operands.data(), sinks.data() + task * 64); });
}

}  // namespace

double measure_fma_peak(const Threads& threads, double seconds) {
  apply_simd_environment();
  return product_rate(threads, seconds, [](std::int64_t steps, const float* operands, float* sink) {
    return HWY_DYNAMIC_DISPATCH(FmaLoop)(steps, operands, sink);
  });
}

double measure_bf16_peak(const Threads& threads, double seconds) {
  apply_simd_environment();
  if (!cpu_has_bf16_products()) return 0;
  return product_rate(threads, seconds, [](std::int64_t steps, const float* operands, float* sink) {
    return HWY_DYNAMIC_DISPATCH(PairLoop)(steps, operands, sink);
  });
}

double measure_read_bandwidth(const Threads& threads, std::size_t bytes, double seconds) {
  apply_simd_environment();
  const std::size_t workers = static_cast<std::size_t>(threads.workers());
  const auto floats = static_cast<std::int64_t>(bytes / sizeof(float));
  std::vector<AlignedBuffer> buffers;
  for (std::size_t w = 0; w < workers; ++w) {
    buffers.emplace_back(bytes);
    std::fill_n(reinterpret_cast<float*>(buffers.back().data()), floats, 1.0f);
  }
  std::vector<float> sinks(workers * 16);
  double best = 0;
  for (int streams : {1, 4}) {
    best = std::max(best, rate(threads, seconds, [&](std::int64_t task) {
                      const auto w = static_cast<std::size_t>(task);
                      sinks[w * 16] += HWY_DYNAMIC_DISPATCH(ReadLoop)(reinterpret_cast<const float*>(buffers[w].data()),
                                                                      floats, streams);
                      return static_cast<double>(bytes);
                    }));
  }
  return best;
}

}  // namespace headway
#endif  // HWY_ONCE
