// The sequences of a call: which tokens are theirs, at which positions, and which keys each token sees by integers
// alone. Reads starts and lengths, which were checked. Knows no masks and no memory of the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headway/cached_attention.h"
#include "ops/attention/visibility.h"

namespace headway {

inline std::int64_t integer_at(const ConstTensorView& view, std::int64_t index) {
  return reinterpret_cast<const std::int32_t*>(view.data)[index * view.strides[0]];
}

/// Positions that a cache can hold of a sequence.
inline std::int64_t cache_capacity(const KvCache& cache) {
  return cache.block_table ? cache.block_table.dims[1] * cache.key.dims[2] : cache.key.dims[2];
}

struct Sequence {
  std::int64_t index;        // b
  std::int64_t first_token;  // in the call
  std::int64_t tokens;
  std::int64_t length;  // positions, the tokens' included
  std::int64_t oldest;  // the first position that is still in the cache

  /// Of a token, counted from the sequence's first; negative where more tokens than positions are given.
  std::int64_t position(std::int64_t token) const { return length - tokens + token; }
};

class Sequences {
 public:
  Sequences(const CachedAttentionSpec& spec, const CachedAttentionArgs& args)
      : starts_(args.query_starts),
        lengths_(args.lengths),
        capacity_(args.cache.ring ? cache_capacity(args.cache) : 0),
        left_(spec.window.left),
        right_(spec.causal ? 0 : spec.window.right) {}

  std::int64_t count() const { return lengths_.dims[0]; }
  Sequence operator[](std::int64_t b) const {
    const std::int64_t first = starts_ ? integer_at(starts_, b) : b;
    const std::int64_t tokens = starts_ ? integer_at(starts_, b + 1) - first : 1;
    const std::int64_t length = integer_at(lengths_, b);
    return {b, first, tokens, length, capacity_ > 0 ? std::max<std::int64_t>(length - capacity_, 0) : 0};
  }
  /// Keys that a token sees. Both ends grow with the token.
  KeyRange seen(const Sequence& sequence, std::int64_t token) const {
    const std::int64_t p = sequence.position(token);
    const std::int64_t begin = std::max(left_ >= 0 ? p - left_ : 0, sequence.oldest);
    const std::int64_t end = std::min(right_ >= 0 ? p + right_ + 1 : sequence.length, sequence.length);
    return {begin, std::max(begin, end)};
  }
  /// Keys that some token of [begin, end) sees: a hull.
  KeyRange seen(const Sequence& sequence, std::int64_t begin, std::int64_t end) const {
    if (begin >= end) return {};
    KeyRange first = seen(sequence, begin);
    // A token before position 0 sees nothing and must not widen the hull.
    while (first.empty() && ++begin < end) first = seen(sequence, begin);
    return first.empty() ? KeyRange{} : KeyRange{first.begin, seen(sequence, end - 1).end};
  }

 private:
  ConstTensorView starts_, lengths_;
  std::int64_t capacity_;  // of a ring, else 0
  std::int64_t left_, right_;
};

}  // namespace headway
