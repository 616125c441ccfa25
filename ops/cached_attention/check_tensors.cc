// One require per rule.
#include "ops/cached_attention/check_tensors.h"

#include <algorithm>

#include "ops/cached_attention/sequences.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

void check_integers(const char* argument, const ConstTensorView& view, std::int64_t count) {
  check_tensor(argument, view, DataType::kI32, {count});
}

}  // namespace

void check_tensor(const char* argument, const ConstTensorView& view, DataType type, const Dims& dims) {
  require(view.present, argument, " is absent, expected ", type_name(type), " ", dims);
  require(view.type == type, argument, " is ", type_name(view.type), ", expected ", type_name(type));
  require(view.dims == dims, argument, " has dims ", view.dims, ", expected ", dims);
  require(view.data != nullptr || view.count() == 0, argument, " is null, expected ", view.dims, " elements");
}

void check_rows(const char* argument, const ConstTensorView& view, DataType type, const Dims& dims) {
  check_tensor(argument, view, type, dims);
  require(view.dims.back() <= 1 || view.strides[view.rank() - 1] == 1, argument, " has innermost stride ",
          view.strides[view.rank() - 1], ", expected 1");
}

CallSizes check_sequences(const ConstTensorView& query_starts, const ConstTensorView& lengths, std::int64_t tokens) {
  require(lengths.present, "lengths is absent, expected i32 [batch]");
  require(lengths.rank() == 1, "lengths has rank ", lengths.rank(), ", expected 1");
  const std::int64_t batch = lengths.dims[0];
  check_integers("lengths", lengths, batch);
  if (!query_starts) {
    require(tokens == batch, "query has ", tokens, " tokens, expected one for each of ", batch,
            " sequences, or query_starts");
  } else {
    check_integers("query_starts", query_starts, batch + 1);
    std::int64_t last = 0;
    for (std::int64_t b = 0; b <= batch; ++b) {
      const std::int64_t start = integer_at(query_starts, b);
      if (b == 0) require(start == 0, "query_starts[0] is ", start, ", expected 0");
      require(start >= last, "query_starts[", b, "] is ", start, ", expected at least query_starts[", b - 1,
              "] = ", last);
      last = start;
    }
    require(last == tokens, "query_starts[", batch, "] is ", last, ", expected the tokens = ", tokens);
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = integer_at(lengths, b);
    require(length >= 0, "lengths[", b, "] is ", length, ", expected at least 0");
  }
  return {batch, tokens};
}

void check_cache(const KvCache& cache, const CacheShape& shape, std::int64_t batch) {
  require(!cache.key_scale && !cache.value_scale, "cache.", cache.key_scale ? "key_scale" : "value_scale",
          " is given, but a cache of ", type_name(shape.type), " has no scales");
  require(cache.key.present, "cache.key is absent, expected ", type_name(shape.type), " of rank 4");
  require(cache.key.rank() == 4, "cache.key has rank ", cache.key.rank(), ", expected 4");
  const Dims& dims = cache.key.dims;
  check_rows("cache.key", cache.key, shape.type, {dims[0], shape.kv_heads, dims[2], shape.head_dim});
  check_rows("cache.value", cache.value, shape.type, {dims[0], shape.kv_heads, dims[2], shape.value_head_dim});
  if (cache.block_table) {
    require(!cache.slots, "cache.slots is given, but cache.block_table says where sequences lie");
    require(cache.block_table.rank() == 2, "cache.block_table has rank ", cache.block_table.rank(), ", expected 2");
    check_tensor("cache.block_table", cache.block_table, DataType::kI32, {batch, cache.block_table.dims[1]});
    require(dims[2] >= 1, "cache.key has blocks of ", dims[2], " rows, expected at least 1");
  } else if (cache.slots) {
    check_integers("cache.slots", cache.slots, batch);
  } else {
    require(dims[0] >= batch, "cache.key has ", dims[0], " slots, expected at least batch = ", batch);
  }
  if (cache.ring && batch > 0) {
    require(cache_capacity(cache) >= 1, "cache.key has ", cache_capacity(cache), " rows in its ring, expected 1");
  }
}

void check_places(const KvCache& cache, std::int64_t b, std::int64_t length, const KeyRange& keys) {
  const std::int64_t capacity = cache_capacity(cache);
  require(cache.ring || length <= capacity, "lengths[", b, "] is ", length, ", expected at most ", capacity,
          " rows of the cache");
  if (keys.empty()) return;
  const std::int64_t outer = cache.key.dims[0];
  if (!cache.block_table) {
    if (!cache.slots) return;
    const std::int64_t slot = integer_at(cache.slots, b);
    require(slot >= 0 && slot < outer, "cache.slots[", b, "] is ", slot, ", expected 0 to ", outer - 1);
    return;
  }
  const std::int64_t rows = cache.key.dims[2];
  const std::int64_t blocks = cache.block_table.dims[1];
  const std::int64_t first = keys.begin / rows;
  const std::int64_t count = std::min((keys.end - 1) / rows - first + 1, blocks);
  const auto* const table =
      reinterpret_cast<const std::int32_t*>(cache.block_table.data) + b * cache.block_table.strides[0];
  const std::int64_t stride = cache.block_table.strides[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = (first + i) % blocks;
    const std::int32_t block = table[at * stride];
    require(block >= 0 && block < outer, "cache.block_table[", b, "][", at, "] is ", block, ", expected 0 to ",
            outer - 1);
  }
}

}  // namespace headway
