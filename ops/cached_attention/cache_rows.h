// Where the rows of a sequence lie in a cache: contiguous, by slots, in blocks or in a ring. Knows positions and
// addresses, not what is computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/kv_cache.h"

namespace headway {

/// Rows of consecutive positions that follow one another in memory.
struct CacheRun {
  std::int64_t outer;  // slot or block
  std::int64_t row;    // of the slot or block
  std::int64_t count;
};

/// Of one tensor of a cache, for one key/value head.
struct CacheTensor {
  const std::byte* head;      // row 0 of slot or block 0
  std::int64_t outer_stride;  // bytes
  std::int64_t row_stride;    // bytes

  const std::byte* at(const CacheRun& run) const { return head + run.outer * outer_stride + run.row * row_stride; }
};
CacheTensor cache_tensor(const TensorView& view, std::int64_t kv_head);

/// Positions of one sequence.
class SequencePlaces {
 public:
  SequencePlaces(const KvCache& cache, std::int64_t sequence);
  /// The run that begins at `position` and ends at `end` or before it.
  CacheRun run(std::int64_t position, std::int64_t end) const;

 private:
  const std::int32_t* blocks_ = nullptr;  // null: contiguous
  std::int64_t blocks_stride_ = 0;
  std::int64_t outer_ = 0;  // slot
  std::int64_t rows_;       // of a slot or block
  std::int64_t capacity_;   // of a ring, else 0
};

/// Calls use(run, position of its first row) for the runs of positions [begin, end).
template <class Use>
void for_each_run(const SequencePlaces& places, std::int64_t begin, std::int64_t end, Use use) {
  for (std::int64_t at = begin; at < end;) {
    const CacheRun run = places.run(at, end);
    use(run, at);
    at += run.count;
  }
}

/// Addresses of the rows of positions [begin, end).
void row_addresses(const SequencePlaces& places, const CacheTensor& tensor, std::int64_t begin, std::int64_t end,
                   const std::byte** rows);

}  // namespace headway
