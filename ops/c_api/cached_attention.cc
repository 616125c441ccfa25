// The C API's attention over a cache.
#include "headway/cached_attention.h"

#include <limits>
#include <memory>

#include "ops/c_api/cached_attention.h"
#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/kv_cache.h"
#include "ops/c_api/rules.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

struct headway_cached_attention {
  CachedAttention attention;
};

namespace {

headway_cached_attention_spec default_spec() noexcept {
  headway_cached_attention_spec spec{};
  spec.num_heads = 1;
  spec.num_kv_heads = spec.value_head_dim = HEADWAY_DEFAULT;
  spec.scale = std::numeric_limits<float>::quiet_NaN();
  spec.window_left = spec.window_right = HEADWAY_OPEN;
  spec.causal = 1;
  spec.max_batch = spec.max_tokens = 1;
  return spec;
}

}  // namespace

namespace headway::c_api {

CachedAttentionSpec spec_of(const headway_cached_attention_spec* from) {
  const headway_cached_attention_spec given = read(from, "spec", default_spec());
  CachedAttentionSpec spec;
  spec.type = type_of(given.type, "type");
  spec.cache_type = type_of(given.cache_type, "cache_type");
  spec.num_heads = given.num_heads;
  spec.num_kv_heads = optional_size(given.num_kv_heads);
  spec.head_dim = given.head_dim;
  spec.value_head_dim = optional_size(given.value_head_dim);
  spec.scale = optional_scale(given.scale);
  spec.softcap = given.softcap;
  spec.causal = given.causal != 0;
  spec.window = {given.window_left, given.window_right};
  spec.batch_invariant = given.batch_invariant != 0;
  spec.max_batch = given.max_batch;
  spec.max_tokens = given.max_tokens;
  spec.max_cache = given.max_cache;
  return spec;
}

CachedAttentionArgs args_of(const headway_cached_attention_args* from) {
  const headway_cached_attention_args given = read(from, "args", headway_cached_attention_args{});
  CachedAttentionArgs args;
  args.query = view(given.query, "query");
  args.query_starts = view(given.query_starts, "query_starts");
  args.lengths = required_view(given.lengths, "lengths");
  args.cache = cache_of(given.cache);
  args.sinks = view(given.sinks, "sinks");
  args.alibi_slopes = view(given.alibi_slopes, "alibi_slopes");
  args.relative_bias = view(given.relative_bias, "relative_bias");
  args.relative_bias_future = given.relative_bias_future;
  args.mask = view(given.mask, "mask");
  args.mask_starts = view(given.mask_starts, "mask_starts");
  args.out = view(given.out, "out");
  args.log_sum_exp = view(given.log_sum_exp, "log_sum_exp");
  return args;
}

}  // namespace headway::c_api

void headway_cached_attention_spec_init_sized(headway_cached_attention_spec* spec, size_t struct_size) {
  init(spec, struct_size, default_spec());
}

void headway_cached_attention_args_init_sized(headway_cached_attention_args* args, size_t struct_size) {
  init(args, struct_size, headway_cached_attention_args{});
}

headway_status headway_cached_attention_create(const headway_cached_attention_spec* spec,
                                               headway_cached_attention** attention) {
  return guarded([&] {
    headway_cached_attention*& result = required_result(attention, "attention");
    give(std::make_unique<headway_cached_attention>(headway_cached_attention{CachedAttention(spec_of(spec))}), &result);
  });
}

void headway_cached_attention_destroy(headway_cached_attention* attention) { delete attention; }

headway_status headway_cached_attention_workspace_bytes(const headway_cached_attention* attention, int workers,
                                                        size_t* bytes) {
  return guarded([&] {
    size_t& result = required_result(bytes, "bytes");
    require(workers >= 1, "workers is ", workers, ", expected at least 1");
    result = required(attention, "attention").attention.workspace_bytes(workers);
  });
}

headway_status headway_cached_attention_run(const headway_cached_attention* attention,
                                            const headway_cached_attention_args* args, void* workspace,
                                            const headway_threads* threads) {
  return guarded([&] {
    const CachedAttentionArgs given = args_of(args);
    require(given.query.present, "query is null");
    require(given.out.present, "out is null");
    required(attention, "attention").attention.run(given, static_cast<std::byte*>(workspace), threads_of(threads));
  });
}

headway_status headway_cached_attention_explain(const headway_cached_attention* attention, char* buffer,
                                                size_t capacity, size_t* needed) {
  return guarded([&] { copy_text(required(attention, "attention").attention.explain(), buffer, capacity, needed); });
}

headway_status headway_merge(const headway_tensor* out_a, const headway_tensor* log_sum_exp_a,
                             const headway_tensor* out_b, const headway_tensor* log_sum_exp_b,
                             const headway_tensor* out, const headway_tensor* log_sum_exp,
                             const headway_threads* threads) {
  return guarded([&] {
    merge({required_view(out_a, "out_a"), required_view(log_sum_exp_a, "log_sum_exp_a")},
          {required_view(out_b, "out_b"), required_view(log_sum_exp_b, "log_sum_exp_b")}, required_view(out, "out"),
          required_view(log_sum_exp, "log_sum_exp"), threads_of(threads));
  });
}
