// What must hold of the arguments of append().
#include "ops/cached_attention/append.h"

#include <algorithm>
#include <cmath>

#include "ops/cached_attention/check_tensors.h"
#include "ops/cached_attention/sequences.h"
#include "ops/cached_attention/spec.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

void check_projected(const char* argument, const ConstTensorView& view, std::int64_t tokens) {
  require(is_row_type(view.type), argument, " is ", type_name(view.type), ", expected f32, bf16 or f16");
  require(view.rank() == 3, argument, " has rank ", view.rank(), ", expected 3");
  check_rows(argument, view, view.type, {tokens, view.dims[1], view.dims[2]});
}

void check_weight(const char* argument, const ConstTensorView& weight, bool across_heads, std::int64_t heads,
                  std::int64_t head_dim) {
  if (weight) check_tensor(argument, weight, DataType::kF32, {across_heads ? heads * head_dim : head_dim});
}

/// Norm and rotation of the heads of one argument.
void check_heads(const char* argument, const ConstTensorView& view, const AppendArgs& args, const char* weight_argument,
                 const ConstTensorView& weight) {
  const std::int64_t head_dim = view.dims[2];
  require(head_dim <= kMaxHeadDim, argument, " has heads of ", head_dim, ", expected at most ", kMaxHeadDim);
  if (args.rotary != nullptr) {
    require(args.rotary->rotary_dim() <= head_dim, "rotary turns ", args.rotary->rotary_dim(),
            " dimensions, expected at most ", head_dim, " of ", argument);
  }
  if (args.norm.enabled) check_weight(weight_argument, weight, args.norm.across_heads, view.dims[1], head_dim);
}

void check_cache_of(const AppendArgs& args, const KvCache& cache, std::int64_t batch) {
  require(args.value.present, "value is absent, but key is given");
  check_projected("value", args.value, args.key.dims[0]);
  require(args.value.type == args.key.type, "value is ", type_name(args.value.type), ", expected ",
          type_name(args.key.type));
  require(args.value.dims[1] == args.key.dims[1], "value has ", args.value.dims[1], " heads, expected ",
          args.key.dims[1]);
  const std::int64_t widest = std::max(args.key.dims[2], args.value.dims[2]);
  require(widest <= kMaxHeadDim, "value has heads of ", widest, ", expected at most ", kMaxHeadDim);
  require(cache.key.present, "cache.key is absent, expected rank 4");
  if (!is_row_type(cache.key.type)) {
    fail(ErrorCode::kUnsupported, "cache.key is ", type_name(cache.key.type),
         ", which is not supported, expected f32, bf16 or f16");
  }
  check_cache(cache, {cache.key.type, args.key.dims[1], args.key.dims[2], args.value.dims[2]}, batch);
  check_no_self_overlap("cache.key", cache.key);
  check_no_self_overlap("cache.value", cache.value);
  check_apart("cache.key", cache.key, "cache.value", cache.value);
}

void check_mapping(const AppendArgs& args, const KvCache& cache, std::int64_t tokens) {
  const ConstTensorView& mapping = args.slot_mapping;
  const bool integer = mapping.type == DataType::kI32 || mapping.type == DataType::kI64;
  require(integer, "slot_mapping is ", type_name(mapping.type), ", expected i32 or i64");
  check_tensor("slot_mapping", mapping, mapping.type, {tokens});
  const std::int64_t rows = cache.key.dims[0] * cache.key.dims[2];
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t row = wide_integer_at(mapping, t);
    require(row >= -1 && row < rows, "slot_mapping[", t, "] is ", row, ", expected -1 to ", rows - 1);
  }
}

Sequence sequence_of(const AppendArgs& args, std::int64_t b) {
  const std::int64_t first = args.query_starts ? integer_at(args.query_starts, b) : b;
  const std::int64_t end = args.query_starts ? integer_at(args.query_starts, b + 1) : b + 1;
  return {b, first, end - first, integer_at(args.lengths, b), 0};
}

void check_position(const AppendArgs& args, const char* source, std::int64_t index, std::int64_t position) {
  require(position >= 0 && position < args.rotary->positions(), source, "[", index, "] gives position ", position,
          ", expected 0 to ", args.rotary->positions() - 1, " of rotary");
}

void check_rotated_positions(const AppendArgs& args, const AppendSizes& sizes) {
  if (args.positions) check_tensor("positions", args.positions, DataType::kI32, {sizes.tokens});
  if (args.rotary == nullptr) return;
  if (args.positions) {
    for (std::int64_t t = 0; t < sizes.tokens; ++t) check_position(args, "positions", t, integer_at(args.positions, t));
    return;
  }
  require(args.lengths.present, "positions is absent, but rotary needs it where lengths is absent too");
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const Sequence sequence = sequence_of(args, b);
    if (sequence.tokens > 0) check_position(args, "lengths", b, sequence.length - 1);
  }
}

void check_overlaps(const AppendArgs& args, const KvCache& cache) {
  const struct {
    const char* argument;
    ConstTensorView view;
  } inputs[] = {{"key", args.key},
                {"value", args.value},
                {"query_starts", args.query_starts},
                {"lengths", args.lengths},
                {"slot_mapping", args.slot_mapping},
                {"positions", args.positions},
                {"norm.query_weight", args.norm.query_weight},
                {"norm.key_weight", args.norm.key_weight},
                {"cache.slots", cache.slots},
                {"cache.block_table", cache.block_table}};
  for (const auto& input : inputs) {
    check_apart("query", args.query, input.argument, input.view);
    if (!args.key) continue;
    check_apart("cache.key", cache.key, input.argument, input.view);
    check_apart("cache.value", cache.value, input.argument, input.view);
  }
  if (!args.key) return;
  check_apart("query", args.query, "cache.key", cache.key);
  check_apart("query", args.query, "cache.value", cache.value);
}

}  // namespace

AppendSizes check_append(const AppendArgs& args, const KvCache& cache) {
  require(args.key.present || args.query.present, "key is absent, and query too");
  require(args.key.present || !args.value.present, "value is given, but key is absent");
  AppendSizes sizes{args.key ? args.key.dims[0] : args.query.dims[0], 0};
  if (args.key) check_projected("key", args.key, sizes.tokens);
  if (args.query) check_projected("query", args.query, sizes.tokens);
  require(!args.lengths || !args.slot_mapping, "lengths is given, but slot_mapping says where tokens go");
  require(args.lengths || !args.query_starts, "query_starts is given, but lengths is absent");
  require(args.lengths || args.slot_mapping || !args.key, "lengths is absent, and slot_mapping too");
  if (args.lengths) sizes.batch = check_sequences(args.query_starts, args.lengths, sizes.tokens).batch;
  if (args.key) check_cache_of(args, cache, sizes.batch);
  if (args.norm.enabled) {
    require(std::isfinite(args.norm.epsilon) && args.norm.epsilon >= 0, "norm.epsilon is ", args.norm.epsilon,
            ", expected a finite number of at least 0");
  }
  if (args.key) check_heads("key", args.key, args, "norm.key_weight", args.norm.key_weight);
  if (args.query) check_heads("query", args.query, args, "norm.query_weight", args.norm.query_weight);
  if (args.key && args.slot_mapping) check_mapping(args, cache, sizes.tokens);
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const Sequence sequence = sequence_of(args, b);
    require(sequence.tokens <= sequence.length, "query_starts gives sequence ", b, " ", sequence.tokens,
            " tokens, expected at most lengths[", b, "] = ", sequence.length);
    if (!args.key) continue;
    const std::int64_t kept = cache.ring ? std::min(sequence.tokens, cache_capacity(cache)) : sequence.tokens;
    check_places(cache, b, sequence.length, {sequence.length - kept, sequence.length});
  }
  check_rotated_positions(args, sizes);
  if (args.query) check_no_self_overlap("query", args.query);
  check_overlaps(args, cache);
  return sizes;
}

}  // namespace headway
