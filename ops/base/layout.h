// Integer arithmetic of memory layouts: whole blocks of a length, whole cache lines. Knows neither tensors nor types.
#pragma once

#include <cstdint>

namespace headway {

inline constexpr std::int64_t kCacheLineBytes = 64;
inline constexpr std::int64_t kCacheLineFloats = 16;

/// Blocks of `size` that hold `count` elements; both are at least 0, `size` at least 1.
constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t size) {
  return count / size + (count % size != 0 ? 1 : 0);  // count + size would overflow near 2⁶³
}

/// The least multiple of `size` that is at least `count`.
constexpr std::int64_t round_up(std::int64_t count, std::int64_t size) { return ceil_div(count, size) * size; }

}  // namespace headway
