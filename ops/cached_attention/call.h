// What the tasks of one call share, and what the rows of one sequence and key/value head do. Knows no engine.
#pragma once

#include <cstdint>

#include "headway/cached_attention.h"
#include "ops/cached_attention/cache_rows.h"
#include "ops/cached_attention/geometry.h"
#include "ops/cached_attention/row_bias.h"
#include "ops/cached_attention/sequences.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/cache_rows.h"
#include "ops/simd/few_in_order.h"
#include "ops/simd/few_queries.h"
#include "ops/simd/softmax.h"
#include "ops/simd/softmax_state.h"

namespace headway {

/// Of one SIMD target, resolved when the object is made.
struct CachedKernels {
  AttentionTileKernels tile = attention_tile_kernels();
  FewQueriesKernels few = few_queries_kernels();
  FewPointedQueriesKernels few_pointed = few_pointed_queries_kernels();
  FewInOrderKernels in_order = few_in_order_kernels();
  SoftmaxKernels softmax = softmax_kernels();
  CacheRowKernels rows = cache_row_kernels();
  SoftmaxStateKernels states = softmax_state_kernels();
};

struct CachedCall {
  const CachedAttentionSpec& spec;
  const CachedGeometry& geometry;
  const CachedKernels& kernels;
  const CachedAttentionArgs& args;
  const Sequences& sequences;
  const RowBias& bias;
};

/// A row of a sequence and key/value head, as geometry.h numbers them.
struct CachedRow {
  std::int64_t token;  // of the sequence
  std::int64_t head;
};

/// The rows of a sequence and key/value head against keys [keys.begin, keys.end).
struct HeadKeys {
  HeadKeys(const CachedCall& c, const Sequence& s, std::int64_t kv, const KeyRange& range)
      : call(c),
        sequence(s),
        kv_head(kv),
        keys(range),
        places(c.args.cache, s.index),
        key(cache_tensor(c.args.cache.key, kv)),
        value(cache_tensor(c.args.cache.value, kv)) {}

  CachedRow row(std::int64_t index) const {
    return {index / call.geometry.sharing, kv_head * call.geometry.sharing + index % call.geometry.sharing};
  }
  /// Keys of the range that a row sees.
  KeyRange seen(const CachedRow& row) const {
    const KeyRange all = call.sequences.seen(sequence, row.token);
    const std::int64_t begin = std::max(all.begin, keys.begin);
    return {begin, std::max(begin, std::min(all.end, keys.end))};
  }
  const std::byte* query_row(const CachedRow& row) const {
    const ConstTensorView& q = call.args.query;
    const std::int64_t at = (sequence.first_token + row.token) * q.strides[0] + row.head * q.strides[1];
    return q.data + at * static_cast<std::int64_t>(size_bytes(q.type));
  }

  const CachedCall& call;
  Sequence sequence;
  std::int64_t kv_head;
  KeyRange keys;
  SequencePlaces places;
  CacheTensor key, value;
};

}  // namespace headway
