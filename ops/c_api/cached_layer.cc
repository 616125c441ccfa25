// The C API's layer over a cache.
#include <memory>
#include <utility>

#include "headway/cached_multi_head_attention.h"
#include "headway/headway_layer.h"
#include "ops/c_api/cached_attention.h"
#include "ops/c_api/guarded.h"
#include "ops/c_api/handles.h"
#include "ops/c_api/kv_cache.h"
#include "ops/c_api/structs.h"
#include "ops/c_api/views.h"

using namespace headway;         // NOLINT: functions of the C API are in no namespace
using namespace headway::c_api;  // NOLINT

struct headway_cached_layer {
  CachedMultiHeadAttention layer;
};

namespace {

headway_cached_layer_spec default_spec() noexcept {
  headway_cached_layer_spec spec{};
  spec.norm_epsilon = HeadNorm().epsilon;
  return spec;
}

CachedMultiHeadAttention layer_of(const headway_cached_layer_spec& given) {
  CachedMultiHeadAttentionSpec spec;
  spec.attention = spec_of(given.attention);
  spec.embed_dim = given.embed_dim;
  spec.rotary = given.rotary == nullptr ? nullptr : &given.rotary->table;
  spec.norm.enabled = given.norm != 0;
  spec.norm.across_heads = given.norm_across_heads != 0;
  spec.norm.epsilon = given.norm_epsilon;
  spec.norm.weight_offset = given.norm_weight_offset;
  spec.norm.query_weight = view(given.norm_query_weight, "norm_query_weight");
  spec.norm.key_weight = view(given.norm_key_weight, "norm_key_weight");
  CachedMultiHeadAttentionWeights weights;
  weights.query = required_view(given.query, "query weight");
  weights.key = required_view(given.key, "key weight");
  weights.value = required_view(given.value, "value weight");
  weights.output = required_view(given.output, "output weight");
  weights.query_bias = view(given.query_bias, "query_bias");
  weights.key_bias = view(given.key_bias, "key_bias");
  weights.value_bias = view(given.value_bias, "value_bias");
  weights.output_bias = view(given.output_bias, "output_bias");
  return CachedMultiHeadAttention(spec, weights);
}

CachedMultiHeadAttentionArgs args_of(const headway_cached_layer_args& given) {
  CachedMultiHeadAttentionArgs args;
  args.x = required_view(given.x, "x");
  args.attention = headway::c_api::args_of(given.attention);
  args.cache = std::exchange(args.attention.cache, KvCache());
  args.slot_mapping = view(given.slot_mapping, "slot_mapping");
  args.positions = view(given.positions, "positions");
  args.residual = view(given.residual, "residual");
  args.out = required_view(given.out, "out");
  return args;
}

}  // namespace

void headway_cached_layer_spec_init_sized(headway_cached_layer_spec* spec, size_t struct_size) {
  init(spec, struct_size, default_spec());
}

void headway_cached_layer_args_init_sized(headway_cached_layer_args* args, size_t struct_size) {
  init(args, struct_size, headway_cached_layer_args{});
}

headway_status headway_cached_layer_create(const headway_cached_layer_spec* spec, headway_cached_layer** layer) {
  return guarded([&] {
    headway_cached_layer*& result = required_result(layer, "layer");
    CachedMultiHeadAttention made = layer_of(read(spec, "spec", default_spec()));
    give(std::make_unique<headway_cached_layer>(headway_cached_layer{std::move(made)}), &result);
  });
}

void headway_cached_layer_destroy(headway_cached_layer* layer) { delete layer; }

headway_status headway_cached_layer_workspace_bytes(const headway_cached_layer* layer, int workers, size_t* bytes) {
  return guarded([&] {
    size_t& result = required_result(bytes, "bytes");
    require(workers >= 1, "workers is ", workers, ", expected at least 1");
    result = required(layer, "layer").layer.workspace_bytes(workers);
  });
}

headway_status headway_cached_layer_run(const headway_cached_layer* layer, const headway_cached_layer_args* args,
                                        void* workspace, const headway_threads* threads) {
  return guarded([&] {
    const CachedMultiHeadAttentionArgs tensors = args_of(read(args, "args", headway_cached_layer_args{}));
    required(layer, "layer").layer.run(tensors, static_cast<std::byte*>(workspace), threads_of(threads));
  });
}

headway_status headway_cached_layer_explain(const headway_cached_layer* layer, char* buffer, size_t capacity,
                                            size_t* needed) {
  return guarded([&] { copy_text(required(layer, "layer").layer.explain(), buffer, capacity, needed); });
}
