// Divisions by the block's size happen once per run, not once per row.
#include "ops/cached_attention/cache_rows.h"

#include <algorithm>

#include "ops/cached_attention/sequences.h"

namespace headway {

CacheTensor cache_tensor(const TensorView& view, std::int64_t kv_head) {
  const auto bytes = static_cast<std::int64_t>(size_bytes(view.type));
  return {view.data + kv_head * view.strides[1] * bytes, view.strides[0] * bytes, view.strides[2] * bytes};
}

SequencePlaces::SequencePlaces(const KvCache& cache, std::int64_t sequence)
    : rows_(cache.key.dims[2]), capacity_(cache.ring ? cache_capacity(cache) : 0) {
  if (cache.block_table) {
    const ConstTensorView& table = cache.block_table;
    blocks_ = reinterpret_cast<const std::int32_t*>(table.data) + sequence * table.strides[0];
    blocks_stride_ = table.strides[1];
  } else {
    outer_ = cache.slots ? integer_at(cache.slots, sequence) : sequence;
  }
}

CacheRun SequencePlaces::run(std::int64_t position, std::int64_t end) const {
  const std::int64_t at = capacity_ > 0 ? position % capacity_ : position;
  if (blocks_ == nullptr) return {outer_, at, std::min(end - position, rows_ - at)};
  const std::int64_t block = at / rows_;
  const std::int64_t row = at - block * rows_;
  return {blocks_[block * blocks_stride_], row, std::min(end - position, rows_ - row)};
}

void row_addresses(const SequencePlaces& places, const CacheTensor& tensor, std::int64_t begin, std::int64_t end,
                   const std::byte** rows) {
  for_each_run(places, begin, end, [&](const CacheRun& run, std::int64_t) {
    const std::byte* at = tensor.at(run);
    for (std::int64_t i = 0; i < run.count; ++i, at += tensor.row_stride) *rows++ = at;
  });
}

}  // namespace headway
