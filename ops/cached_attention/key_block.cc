// Keys stay in place run by run; values only where the block is one run, since each part of a block would load and
// store the whole context once more.
#include "ops/cached_attention/key_block.h"

namespace headway {
namespace {

/// Whether runs are long enough: those of blocks are the block's, those of a slot or ring one or two.
bool runs_are_long(const HeadKeys& keys) {
  const KvCache& cache = keys.call.args.cache;
  return keys.call.spec.cache_type == DataType::kF32 && (!cache.block_table || cache.key.dims[2] >= kMinRunKeys);
}

/// Rows of `tensor` to `to`, kGatherPadding floats apart.
void gather(const HeadKeys& keys, const CacheTensor& tensor, const KeyRange& range, const TileScratch& scratch,
            std::int64_t columns, float* to) {
  row_addresses(keys.places, tensor, range.begin, range.end, scratch.addresses);
  keys.call.kernels.rows.of(keys.call.spec.cache_type)
      .gather({.rows = scratch.addresses,
               .count = range.end - range.begin,
               .columns = columns,
               .to = to,
               .to_stride = columns + kGatherPadding});
}

void gather_keys(const HeadKeys& keys, const KeyRange& range, const TileScratch& scratch, CachedKeyBlock* block) {
  const std::int64_t columns = keys.call.spec.head_dim;
  gather(keys, keys.key, range, scratch, columns, scratch.key);
  block->runs[0] = {range.begin, range.end, scratch.key, columns + kGatherPadding};
  block->run_count = 1;
}

void gather_values(const HeadKeys& keys, const KeyRange& range, const TileScratch& scratch, CachedKeyBlock* block) {
  const std::int64_t columns = *keys.call.spec.value_head_dim;
  gather(keys, keys.value, range, scratch, columns, scratch.value);
  block->value = scratch.value;
  block->value_stride = columns + kGatherPadding;
}

}  // namespace

void read_key_block(const HeadKeys& keys, const KeyRange& range, const TileScratch& scratch, CachedKeyBlock* block) {
  block->begin = range.begin;
  block->end = range.end;
  block->run_count = 0;
  if (!runs_are_long(keys)) {
    gather_keys(keys, range, scratch, block);
    return gather_values(keys, range, scratch, block);
  }
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  for_each_run(keys.places, range.begin, range.end, [&](const CacheRun& run, std::int64_t begin) {
    if (block->run_count == 0) {
      block->value = reinterpret_cast<const float*>(keys.value.at(run));
      block->value_stride = keys.value.row_stride / kFloat;
    }
    block->runs[block->run_count++] = {begin, begin + run.count, reinterpret_cast<const float*>(keys.key.at(run)),
                                       keys.key.row_stride / kFloat};
  });
  if (block->run_count > 1) gather_values(keys, range, scratch, block);
}

}  // namespace headway
