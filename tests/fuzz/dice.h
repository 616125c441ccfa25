// Where a generator's decisions come from: a seed, so that a number reproduces a case, or the bytes of a fuzzer, so
// that it can steer. Knows nothing of what is generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>

namespace headway::fuzz {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  /// Bytes first; when they are used up, 0 for ever, which every generator takes as "stop".
  explicit Dice(std::span<const std::uint8_t> bytes) : bytes_(bytes), from_bytes_(true) {}

  /// In [0, n); 0 for n = 0.
  std::uint64_t below(std::uint64_t n) {
    if (n <= 1) return 0;
    if (!from_bytes_) return next() % n;
    std::uint64_t value = 0;
    for (std::uint64_t reach = 1; reach < n && at_ < bytes_.size(); reach <<= 8) value = value << 8 | bytes_[at_++];
    return value % n;
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::uint64_t n) { return below(n) == n - 1; }
  template <class List>
  const auto& pick(const List& list) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(below(std::size(list))));
  }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return *(list.begin() + below(list.size()));
  }
  /// In [-1, 1], on a grid of 1/512, so that sums of few are exact in f32.
  float unit() { return static_cast<float>(between(-512, 512)) / 512.0f; }

 private:
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

  std::uint64_t state_ = 0;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool from_bytes_ = false;
};

}  // namespace headway::fuzz
