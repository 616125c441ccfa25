// Which keys a query may see by integers alone: causal limit, window, lengths, always visible keys. Knows no user mask.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Half-open range of keys; empty when end ≤ begin.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return end <= begin; }
};

/// The integer rules of one batch entry. A key j is visible to query i when row(i) holds it or j ≥ tail_begin.
class Visibility {
 public:
  Visibility(const AttentionSpec& spec, const AttentionArgs& args, std::int64_t batch);

  /// Keys that query i sees, besides the always visible ones.
  KeyRange row(std::int64_t i) const {
    return {std::clamp(i + first_, std::int64_t{0}, limit_), std::clamp(i + last_ + 1, std::int64_t{0}, limit_)};
  }
  /// Keys that at least one query of [begin, end) may see; a hull, so keys inside it may be hidden from all.
  KeyRange any(std::int64_t begin, std::int64_t end) const { return {row(begin).begin, row(end - 1).end}; }
  /// Keys that every query of [begin, end) sees.
  KeyRange all(std::int64_t begin, std::int64_t end) const { return {row(end - 1).begin, row(begin).end}; }

  /// Keys in [tail_begin, tail_end) are visible to all queries.
  std::int64_t tail_begin() const { return tail_begin_; }
  std::int64_t tail_end() const { return tail_end_; }
  /// Row i sees [i + first(), i + last()] ∩ [0, limit()).
  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }
  std::int64_t limit() const { return limit_; }

 private:
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t limit_;
  std::int64_t tail_begin_;
  std::int64_t tail_end_;
};

}  // namespace headway
