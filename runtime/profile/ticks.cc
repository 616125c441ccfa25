// The time stamp and how long one of its ticks is.
#include <chrono>

#include "headway/profiler.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace headway {
namespace {

using Clock = std::chrono::steady_clock;

/// Ticks and clock read next to each other: of a few tries the one that was disturbed least.
struct Pair {
  std::uint64_t ticks;
  Clock::time_point time;
};

Pair read_pair() {
  Pair best{};
  std::uint64_t best_gap = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = ticks_now();
    const auto time = Clock::now();
    const std::uint64_t gap = ticks_now() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {before + gap / 2, time};
    }
  }
  return best;
}

double measure() {
  // 4 ms against an uncertainty of some 50 ns: good to about 1e-5.
  constexpr auto kStretch = std::chrono::milliseconds(4);
  const Pair begin = read_pair();
  while (Clock::now() - begin.time < kStretch) {
  }
  const Pair end = read_pair();
  const double nanoseconds = std::chrono::duration<double, std::nano>(end.time - begin.time).count();
  return nanoseconds / static_cast<double>(end.ticks - begin.ticks);
}

}  // namespace

std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
}

double nanoseconds_per_tick() {
  static const double kNanoseconds = measure();
  return kNanoseconds;
}

}  // namespace headway
