/* The header as a C11 compiler sees it, and a decode step written in C: two tokens of a sequence appended to a paged
 * cache and attended from. Returns 0 when the result is the mean of two values, else the line that failed. */
#include "headway/headway.h"

#define CHECK(condition) \
  if (!(condition)) return __LINE__

static headway_tensor tensor_of(void* data, uint8_t code, uint8_t bits, int32_t rank, int64_t* shape) {
  headway_tensor tensor = {data, {1, 0}, rank, {code, bits, 1}, shape, NULL, 0};
  return tensor;
}

int decode_in_c(void);
int decode_in_c(void) {
  enum { kTokens = 2, kHeads = 2, kDim = 4, kBlocks = 3, kBlock = 1 };
  float query[kTokens * kHeads * kDim] = {0}, out[kTokens * kHeads * kDim];
  float key[kTokens * kDim] = {1, 2, 3, 4, 5, 6, 7, 8}, value[kTokens * kDim] = {1, 1, 1, 1, 3, 3, 3, 3};
  float key_cache[kBlocks * kBlock * kDim], value_cache[kBlocks * kBlock * kDim];
  float log_sum_exp[kTokens * kHeads];
  int32_t starts[2] = {0, kTokens}, lengths[1] = {kTokens}, table[2] = {2, 0};
  int64_t query_shape[3] = {kTokens, kHeads, kDim}, row_shape[3] = {kTokens, 1, kDim};
  int64_t cache_shape[4] = {kBlocks, 1, kBlock, kDim}, starts_shape[1] = {2}, lengths_shape[1] = {1};
  int64_t table_shape[2] = {1, 2}, lse_shape[2] = {kTokens, kHeads};
  headway_tensor queries = tensor_of(query, 2, 32, 3, query_shape), outs = tensor_of(out, 2, 32, 3, query_shape);
  headway_tensor keys = tensor_of(key, 2, 32, 3, row_shape), values = tensor_of(value, 2, 32, 3, row_shape);
  headway_tensor cached_keys = tensor_of(key_cache, 2, 32, 4, cache_shape);
  headway_tensor cached_values = tensor_of(value_cache, 2, 32, 4, cache_shape);
  headway_tensor query_starts = tensor_of(starts, 0, 32, 1, starts_shape);
  headway_tensor key_lengths = tensor_of(lengths, 0, 32, 1, lengths_shape);
  headway_tensor block_table = tensor_of(table, 0, 32, 2, table_shape);
  headway_tensor sums = tensor_of(log_sum_exp, 2, 32, 2, lse_shape);
  headway_rotary_spec rotary_spec;
  headway_cached_attention_spec spec;
  headway_cached_attention_args args;
  headway_append_args append;
  headway_kv_cache cache;
  headway_rotary* rotary = NULL;
  headway_cached_attention* attention = NULL;
  size_t bytes = 0;
  void* workspace;

  headway_rotary_spec_init(&rotary_spec);
  rotary_spec.rotary_dim = kDim;
  rotary_spec.positions = 16;
  CHECK(headway_rotary_create(&rotary_spec, &rotary) == HEADWAY_OK);
  headway_kv_cache_init(&cache);
  cache.key = &cached_keys;
  cache.value = &cached_values;
  cache.block_table = &block_table;
  headway_append_args_init(&append);
  append.key = &keys;
  append.value = &values;
  append.query = &queries;
  append.query_starts = &query_starts;
  append.lengths = &key_lengths;
  append.rotary = rotary;
  CHECK(headway_append(&append, &cache, NULL) == HEADWAY_OK);
  CHECK(value_cache[2 * kDim] == 1 && value_cache[0] == 3);

  headway_cached_attention_spec_init(&spec);
  spec.num_heads = kHeads;
  spec.num_kv_heads = 1;
  spec.head_dim = kDim;
  spec.max_tokens = kTokens;
  spec.max_cache = 16;
  CHECK(headway_cached_attention_create(&spec, &attention) == HEADWAY_OK);
  CHECK(headway_cached_attention_workspace_bytes(attention, 1, &bytes) == HEADWAY_OK);
  workspace = headway_allocate(bytes);
  headway_cached_attention_args_init(&args);
  args.query = &queries;
  args.query_starts = &query_starts;
  args.lengths = &key_lengths;
  args.cache = &cache;
  args.out = &outs;
  args.log_sum_exp = &sums;
  CHECK(headway_cached_attention_run(attention, &args, workspace, NULL) == HEADWAY_OK);
  /* Queries of 0: the first token sees the first value, the second the mean of both. */
  CHECK(out[0] == 1 && out[kHeads * kDim - 1] == 1 && out[kHeads * kDim] == 2 && out[2 * kHeads * kDim - 1] == 2);
  CHECK(log_sum_exp[0] == 0 && log_sum_exp[kHeads] > 0.693f && log_sum_exp[kHeads] < 0.694f);
  headway_free(workspace);
  headway_cached_attention_destroy(attention);
  headway_rotary_destroy(rotary);
  return 0;
}
