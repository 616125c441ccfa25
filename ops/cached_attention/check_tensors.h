// Checks that attention over a cache and appending to one share: presence, type, dims, values of integers, the cache
// itself, and which memory may be the same. Knows neither's arguments.
#pragma once

#include <cstdint>

#include "headway/kv_cache.h"
#include "ops/attention/visibility.h"

namespace headway {

/// Throws kInvalidArgument unless `view` is there and of this type and these dims, with memory.
void check_tensor(const char* argument, const ConstTensorView& view, DataType type, const Dims& dims);
/// The same for rows, whose innermost stride is 1.
void check_rows(const char* argument, const ConstTensorView& view, DataType type, const Dims& dims);

/// Sequences and tokens of a call.
struct CallSizes {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
};
/// query_starts and lengths of `tokens` tokens; `query_starts` may be absent.
CallSizes check_sequences(const ConstTensorView& query_starts, const ConstTensorView& lengths, std::int64_t tokens);

/// What a cache must hold.
struct CacheShape {
  DataType type;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t value_head_dim;
};
/// Dims, types, scales, ring and, of `batch` sequences, that there are slots or block tables of the right dims.
void check_cache(const KvCache& cache, const CacheShape& shape, std::int64_t batch);
/// That positions [keys.begin, keys.end) of sequence b, of `length`, lie in the cache.
void check_places(const KvCache& cache, std::int64_t b, std::int64_t length, const KeyRange& keys);

}  // namespace headway
