// What must hold of the tensors of a call of CachedAttention.
#include "ops/cached_attention/check_args.h"

#include "ops/cached_attention/check_tensors.h"
#include "ops/cached_attention/sequences.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

void check_biases(const CachedAttentionSpec& spec, const CachedAttentionArgs& args, const CallSizes& sizes) {
  if (args.sinks) check_tensor("sinks", args.sinks, DataType::kF32, {spec.num_heads});
  if (args.alibi_slopes) check_tensor("alibi_slopes", args.alibi_slopes, DataType::kF32, {spec.num_heads});
  if (args.relative_bias) {
    const ConstTensorView& table = args.relative_bias;
    require(table.rank() == 2, "relative_bias has rank ", table.rank(), ", expected 2");
    check_tensor("relative_bias", table, DataType::kF32, {table.dims[0], spec.num_heads});
    require(table.dims[0] >= 1, "relative_bias has ", table.dims[0], " distances, expected at least 1");
    const std::int64_t future = args.relative_bias_future;
    require(future >= 0 && future < table.dims[0], "relative_bias_future is ", future, ", expected 0 to ",
            table.dims[0] - 1, " of relative_bias");
  }
  if (args.mask) {
    const ConstTensorView& mask = args.mask;
    require(mask.type == DataType::kF32 || mask.type == DataType::kBool || mask.type == DataType::kU8, "mask is ",
            type_name(mask.type), ", expected f32, bool or u8");
    require(mask.rank() == 2, "mask has rank ", mask.rank(), ", expected 2");
    check_tensor("mask", mask, mask.type, {sizes.tokens, mask.dims[1]});
  }
  require(args.mask.present || !args.mask_starts.present, "mask_starts is given, but there is no mask");
  if (args.mask_starts) check_tensor("mask_starts", args.mask_starts, DataType::kI32, {sizes.batch});
}

bool is_same_memory(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.type == b.type && a.dims == b.dims && a.strides == b.strides;
}

void check_overlaps(const CachedAttentionArgs& args) {
  const struct {
    const char* argument;
    ConstTensorView view;
  } inputs[] = {{"query", args.query},
                {"query_starts", args.query_starts},
                {"lengths", args.lengths},
                {"cache.key", args.cache.key},
                {"cache.value", args.cache.value},
                {"cache.slots", args.cache.slots},
                {"cache.block_table", args.cache.block_table},
                {"sinks", args.sinks},
                {"alibi_slopes", args.alibi_slopes},
                {"relative_bias", args.relative_bias},
                {"mask", args.mask},
                {"mask_starts", args.mask_starts}};
  for (const auto& input : inputs) {
    if (!is_same_memory(args.out, args.query) || input.view.data != args.query.data) {
      check_apart("out", args.out, input.argument, input.view);
    }
    check_apart("log_sum_exp", args.log_sum_exp, input.argument, input.view);
  }
  check_apart("log_sum_exp", args.log_sum_exp, "out", args.out);
  check_no_self_overlap("out", args.out);
  check_no_self_overlap("log_sum_exp", args.log_sum_exp);
}

}  // namespace

void check_cached_args(const CachedAttentionSpec& spec, const CachedAttentionArgs& args) {
  require(args.query.present, "query is absent, expected ", type_name(spec.type), " [tokens, ", spec.num_heads, ", ",
          spec.head_dim, "]");
  require(args.query.rank() == 3, "query has rank ", args.query.rank(), ", expected 3");
  const std::int64_t tokens = args.query.dims[0];
  check_rows("query", args.query, spec.type, {tokens, spec.num_heads, spec.head_dim});
  check_rows("out", args.out, spec.type, {tokens, spec.num_heads, *spec.value_head_dim});
  if (args.log_sum_exp) check_tensor("log_sum_exp", args.log_sum_exp, DataType::kF32, {tokens, spec.num_heads});
  require(tokens <= spec.max_tokens, "query has ", tokens, " tokens, expected at most max_tokens = ", spec.max_tokens);
  const CallSizes sizes = check_sequences(args.query_starts, args.lengths, tokens);
  require(sizes.batch <= spec.max_batch, "lengths has ", sizes.batch,
          " sequences, expected at most max_batch = ", spec.max_batch);
  check_cache(args.cache, {spec.cache_type, *spec.num_kv_heads, spec.head_dim, *spec.value_head_dim}, sizes.batch);
  check_biases(spec, args, sizes);
  const Sequences sequences(spec, args);
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const Sequence sequence = sequences[b];
    require(sequence.length <= spec.max_cache, "lengths[", b, "] is ", sequence.length,
            ", expected at most max_cache = ", spec.max_cache);
    check_places(args.cache, b, sequence.length, sequences.seen(sequence, 0, sequence.tokens));
  }
  check_overlaps(args);
}

}  // namespace headway
