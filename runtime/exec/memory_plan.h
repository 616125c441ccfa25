// Where intermediate tensors lie in one arena, so that those not alive at the same time share memory. Knows lifetimes
// and bytes only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace headway {

/// Bytes that must be kept from step `first` to step `last`, both inclusive.
struct Lifetime {
  int first = 0;
  int last = 0;
  std::size_t bytes = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< a lifetime each, multiples of 64
  std::size_t arena_bytes = 0;
  std::size_t sum_bytes = 0;  ///< what no sharing would take
};

/// Largest first, each into the smallest gap that fits between those already placed and alive at the same time; beyond
/// 8192 lifetimes in the order of the steps, each into the smallest stretch that is free then.
/// Throws kInvalidArgument when the bytes do not fit 63 bits.
/// Source: Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference", greedy by size.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace headway
