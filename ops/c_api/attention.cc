// The C API's scaled dot-product attention.
#include "headway/attention.h"

#include <memory>

#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/rules.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

struct headway_attention {
  Attention attention;
};

namespace {

headway_attention_spec default_spec() noexcept {
  headway_attention_spec spec{};
  spec.rules = default_rules();
  spec.batch = spec.num_heads = 1;
  spec.num_kv_heads = spec.value_head_dim = HEADWAY_DEFAULT;
  return spec;
}

}  // namespace

void headway_attention_spec_init_sized(headway_attention_spec* spec, size_t struct_size) {
  init(spec, struct_size, default_spec());
}

void headway_attention_args_init_sized(headway_attention_args* args, size_t struct_size) {
  init(args, struct_size, headway_attention_args{});
}

headway_status headway_attention_create(const headway_attention_spec* spec, headway_attention** attention) {
  return guarded([&] {
    headway_attention*& result = required_result(attention, "attention");
    const headway_attention_spec given = read(spec, "spec", default_spec());
    AttentionSpec sizes;
    static_cast<AttentionRules&>(sizes) = rules_of(given.rules);
    sizes.type = type_of(given.type, "type");
    sizes.batch = given.batch;
    sizes.num_heads = given.num_heads;
    sizes.num_kv_heads = optional_size(given.num_kv_heads);
    sizes.query_len = given.query_len;
    sizes.key_len = given.key_len;
    sizes.head_dim = given.head_dim;
    sizes.value_head_dim = optional_size(given.value_head_dim);
    sizes.always_visible_keys = given.always_visible_keys;
    AttentionOptions options;
    if (given.implementation != nullptr) options.implementation = given.implementation;
    give(std::make_unique<headway_attention>(headway_attention{Attention(sizes, options)}), &result);
  });
}

void headway_attention_destroy(headway_attention* attention) { delete attention; }

headway_status headway_attention_workspace_bytes(const headway_attention* attention, int workers, size_t* bytes) {
  return guarded([&] {
    size_t& result = required_result(bytes, "bytes");
    require(workers >= 1, "workers is ", workers, ", expected at least 1");
    result = required(attention, "attention").attention.workspace_bytes(workers);
  });
}

headway_status headway_attention_run(const headway_attention* attention, const headway_attention_args* args,
                                     void* workspace, const headway_threads* threads) {
  return guarded([&] {
    const headway_attention_args given = read(args, "args", headway_attention_args{});
    AttentionArgs tensors;
    tensors.query = required_view(given.query, "query");
    tensors.key = required_view(given.key, "key");
    tensors.value = required_view(given.value, "value");
    tensors.mask = view(given.mask, "mask");
    tensors.key_mask = view(given.key_mask, "key_mask");
    tensors.key_lengths = view(given.key_lengths, "key_lengths");
    tensors.offsets = view(given.offsets, "offsets");
    tensors.out = required_view(given.out, "out");
    tensors.scores = view(given.scores, "scores");
    tensors.log_sum_exp = view(given.log_sum_exp, "log_sum_exp");
    required(attention, "attention").attention.run(tensors, static_cast<std::byte*>(workspace), threads_of(threads));
  });
}

headway_status headway_attention_explain(const headway_attention* attention, char* buffer, size_t capacity,
                                         size_t* needed) {
  return guarded([&] { copy_text(required(attention, "attention").attention.explain(), buffer, capacity, needed); });
}
