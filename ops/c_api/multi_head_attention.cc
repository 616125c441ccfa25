// The C API's layer: projections, heads, attention, output projection.
#include "headway/multi_head_attention.h"

#include <memory>

#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/rules.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

struct headway_multi_head_attention {
  MultiHeadAttention layer;
};

namespace {

headway_multi_head_attention_spec default_spec() noexcept {
  headway_multi_head_attention_spec spec{};
  spec.rules = default_rules();
  spec.batch = spec.num_heads = 1;
  spec.key_len = spec.kdim = spec.vdim = HEADWAY_DEFAULT;
  spec.num_kv_heads = spec.head_dim = spec.value_head_dim = HEADWAY_DEFAULT;
  return spec;
}

MultiHeadAttentionSpec spec_of(const headway_multi_head_attention_spec& given) {
  MultiHeadAttentionSpec spec;
  static_cast<AttentionRules&>(spec) = rules_of(given.rules);
  spec.type = type_of(given.type, "type");
  spec.batch = given.batch;
  spec.query_len = given.query_len;
  spec.key_len = optional_size(given.key_len);
  spec.embed_dim = given.embed_dim;
  spec.kdim = optional_size(given.kdim);
  spec.vdim = optional_size(given.vdim);
  spec.num_heads = given.num_heads;
  spec.num_kv_heads = optional_size(given.num_kv_heads);
  spec.head_dim = optional_size(given.head_dim);
  spec.value_head_dim = optional_size(given.value_head_dim);
  spec.add_zero_attention = given.add_zero_attention != 0;
  spec.self_attention = given.self_attention != 0;
  return spec;
}

MultiHeadAttentionWeights weights_of(const headway_multi_head_attention_weights& given) {
  MultiHeadAttentionWeights weights;
  weights.query = required_view(given.query, "query weight");
  weights.key = required_view(given.key, "key weight");
  weights.value = required_view(given.value, "value weight");
  weights.output = required_view(given.output, "output weight");
  weights.query_bias = view(given.query_bias, "query_bias");
  weights.key_bias = view(given.key_bias, "key_bias");
  weights.value_bias = view(given.value_bias, "value_bias");
  weights.output_bias = view(given.output_bias, "output_bias");
  weights.bias_k = view(given.bias_k, "bias_k");
  weights.bias_v = view(given.bias_v, "bias_v");
  return weights;
}

}  // namespace

void headway_multi_head_attention_spec_init_sized(headway_multi_head_attention_spec* spec, size_t struct_size) {
  init(spec, struct_size, default_spec());
}

void headway_multi_head_attention_weights_init_sized(headway_multi_head_attention_weights* weights,
                                                     size_t struct_size) {
  init(weights, struct_size, headway_multi_head_attention_weights{});
}

void headway_multi_head_attention_args_init_sized(headway_multi_head_attention_args* args, size_t struct_size) {
  init(args, struct_size, headway_multi_head_attention_args{});
}

headway_status headway_multi_head_attention_create(const headway_multi_head_attention_spec* spec,
                                                   const headway_multi_head_attention_weights* weights,
                                                   const headway_multi_head_attention* same_weights,
                                                   headway_multi_head_attention** layer) {
  return guarded([&] {
    headway_multi_head_attention*& result = required_result(layer, "layer");
    const headway_multi_head_attention_spec given = read(spec, "spec", default_spec());
    AttentionOptions options;
    if (given.implementation != nullptr) options.implementation = given.implementation;
    give(std::make_unique<headway_multi_head_attention>(headway_multi_head_attention{MultiHeadAttention(
             spec_of(given), weights_of(read(weights, "weights", headway_multi_head_attention_weights{})), options,
             same_weights == nullptr ? nullptr : &same_weights->layer)}),
         &result);
  });
}

void headway_multi_head_attention_destroy(headway_multi_head_attention* layer) { delete layer; }

headway_status headway_multi_head_attention_workspace_bytes(const headway_multi_head_attention* layer, int workers,
                                                            size_t* bytes) {
  return guarded([&] {
    size_t& result = required_result(bytes, "bytes");
    require(workers >= 1, "workers is ", workers, ", expected at least 1");
    result = required(layer, "layer").layer.workspace_bytes(workers);
  });
}

headway_status headway_multi_head_attention_run(const headway_multi_head_attention* layer,
                                                const headway_multi_head_attention_args* args, void* workspace,
                                                const headway_threads* threads) {
  return guarded([&] {
    const headway_multi_head_attention_args given = read(args, "args", headway_multi_head_attention_args{});
    MultiHeadAttentionArgs tensors;
    tensors.query = required_view(given.query, "query");
    tensors.key = required_view(given.key, "key");
    tensors.value = required_view(given.value, "value");
    tensors.mask = view(given.mask, "mask");
    tensors.key_mask = view(given.key_mask, "key_mask");
    tensors.key_lengths = view(given.key_lengths, "key_lengths");
    tensors.offsets = view(given.offsets, "offsets");
    tensors.out = required_view(given.out, "out");
    tensors.scores = view(given.scores, "scores");
    required(layer, "layer").layer.run(tensors, static_cast<std::byte*>(workspace), threads_of(threads));
  });
}

headway_status headway_multi_head_attention_explain(const headway_multi_head_attention* layer, char* buffer,
                                                    size_t capacity, size_t* needed) {
  return guarded([&] { copy_text(required(layer, "layer").layer.explain(), buffer, capacity, needed); });
}
