// What this machine can do at best, measured now: the yardsticks that every percentage is relative to.
#pragma once

#include <cstddef>

#include "headway/threads.h"

namespace headway {

/// f32 flops per second of a register-only FMA loop of the current SIMD target on `threads.workers()` workers at once,
/// run for about `seconds`.
double measure_fma_peak(const Threads& threads, double seconds = 0.05);

/// The same of products of bf16 pairs that are added up in f32; 0 where target or CPU have none.
double measure_bf16_peak(const Threads& threads, double seconds = 0.05);

/// Bytes per second of the better of two read patterns (one stream, four streams) over `bytes` of memory per worker.
double measure_read_bandwidth(const Threads& threads, std::size_t bytes, double seconds = 0.1);

}  // namespace headway
