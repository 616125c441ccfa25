// Calls with a cache.
#include <memory>

#include "headway/headway_layer.h"
#include "tests/fuzz/c_calls.h"
#include "tests/fuzz/c_problem.h"

namespace headway::fuzz {
namespace {

/// A cache of small slots or blocks with tables that fit it.
void cache_of(Dice* dice, CCall* call, const Sizes& s, headway_kv_cache* cache) {
  headway_kv_cache_init(cache);
  const bool paged = dice->one_in(2);
  const std::int64_t block = paged ? dice->between(1, 4) : s.rows, per = (s.rows + block - 1) / block;
  const std::int64_t slots = s.batch * per;
  call->floats(&cache->key, {slots, s.kv_heads, block, s.width}, CRole::kOut);
  call->floats(&cache->value, {slots, s.kv_heads, block, s.width}, CRole::kOut);
  if (paged) call->indices(&cache->block_table, {s.batch, per}, slots);
  if (!paged && dice->one_in(3)) call->indices(&cache->slots, {s.batch}, slots);
  call->choice(&cache->ring);
  call->size(&cache->struct_size);
}

void cached_spec(CCall* call, const Sizes& s, headway_cached_attention_spec* spec) {
  headway_cached_attention_spec_init(spec);
  spec->num_heads = s.heads, spec->num_kv_heads = s.kv_heads, spec->head_dim = s.width;
  spec->max_batch = s.batch, spec->max_tokens = s.tokens, spec->max_cache = s.rows + 2;
  for (std::int64_t* field :
       {&spec->num_heads, &spec->num_kv_heads, &spec->head_dim, &spec->value_head_dim, &spec->window_left,
        &spec->window_right, &spec->max_batch, &spec->max_tokens, &spec->max_cache}) {
    call->number(field);
  }
  for (std::int32_t* field : {&spec->type, &spec->cache_type, &spec->causal, &spec->batch_invariant})
    call->choice(field);
  call->real(&spec->scale);
  call->real(&spec->softcap);
  call->size(&spec->struct_size);
}

/// Starts, lengths and what biases a call may have.
void cached_args(Dice* dice, CCall* call, const Sizes& s, headway_cached_attention_args* args) {
  call->indices(&args->query_starts, {s.batch + 1}, 1);
  call->values(s.starts());
  call->indices(&args->lengths, {s.batch}, 1);
  call->values(s.lengths());
  if (dice->one_in(4)) call->floats(&args->sinks, {s.heads});
  if (dice->one_in(4)) call->floats(&args->alibi_slopes, {s.heads});
  if (dice->one_in(4)) call->floats(&args->relative_bias, {s.rows, s.heads});
  if (dice->one_in(4)) call->tensor(&args->mask, 1, 8, {s.tokens, 2}, CRole::kBools);
  if (dice->one_in(4)) call->floats(&args->log_sum_exp, {s.tokens, s.heads}, CRole::kOut);
  call->number(&args->relative_bias_future);
  call->size(&args->struct_size);
}

}  // namespace

headway_status call_cached_attention(Dice* dice, CCall* call) {
  const Sizes s(dice);
  headway_cached_attention_spec spec;
  headway_cached_attention_args args;
  headway_kv_cache cache;
  headway_cached_attention_args_init(&args);
  cached_spec(call, s, &spec);
  cache_of(dice, call, s, &cache);
  cached_args(dice, call, s, &args);
  args.cache = &cache;
  call->floats(&args.query, {s.tokens, s.heads, s.width});
  call->floats(&args.out, {s.tokens, s.heads, s.width}, CRole::kOut);
  call->make();
  headway_cached_attention* object = nullptr;
  const headway_status made = headway_cached_attention_create(&spec, &object);
  return use<headway_cached_attention>(
      made, object,
      {headway_cached_attention_workspace_bytes, headway_cached_attention_destroy, headway_cached_attention_explain},
      [&](auto* o, void* workspace) { return headway_cached_attention_run(o, &args, workspace, nullptr); });
}

headway_status call_append(Dice* dice, CCall* call) {
  const Sizes s(dice);
  headway_kv_cache cache;
  headway_append_args args;
  headway_rotary_spec rotary_spec;
  headway_append_args_init(&args);
  headway_rotary_spec_init(&rotary_spec);
  cache_of(dice, call, s, &cache);
  rotary_spec.rotary_dim = s.width, rotary_spec.positions = s.rows;
  for (std::int32_t* field : {&rotary_spec.interleaved, &rotary_spec.scaling, &args.norm, &args.norm_across_heads}) {
    call->choice(field);
  }
  call->number(&rotary_spec.rotary_dim);
  call->number(&rotary_spec.positions);
  call->real(&args.norm_epsilon);
  for (std::size_t* field : {&rotary_spec.struct_size, &args.struct_size}) call->size(field);
  call->floats(&args.key, {s.tokens, s.kv_heads, s.width});
  call->floats(&args.value, {s.tokens, s.kv_heads, s.width});
  call->floats(&args.query, {s.tokens, s.heads, s.width}, CRole::kOut);
  call->indices(&args.query_starts, {s.batch + 1}, 1);
  call->values(s.starts());
  call->indices(&args.lengths, {s.batch}, 1);
  call->values(s.lengths());
  if (dice->one_in(4)) call->indices(&args.positions, {s.tokens}, s.rows);
  if (dice->one_in(4)) call->indices(&args.slot_mapping, {s.tokens}, s.rows);
  if (dice->one_in(4)) call->floats(&args.norm_key_weight, {s.width});
  call->make();
  headway_rotary* rotary = nullptr;
  if (dice->one_in(2)) {
    if (const headway_status made = headway_rotary_create(&rotary_spec, &rotary); made != HEADWAY_OK) return made;
  }
  const std::unique_ptr<headway_rotary, void (*)(headway_rotary*)> held(rotary, headway_rotary_destroy);
  args.rotary = rotary;
  return headway_append(&args, &cache, nullptr);
}

headway_status call_cached_layer(Dice* dice, CCall* call) {
  const Sizes s(dice);
  const std::int64_t embed = dice->between(1, 24);
  headway_cached_attention_spec attention;
  headway_cached_attention_args attention_args;
  headway_cached_layer_spec spec;
  headway_cached_layer_args args;
  headway_kv_cache cache;
  headway_cached_attention_args_init(&attention_args);
  headway_cached_layer_spec_init(&spec);
  headway_cached_layer_args_init(&args);
  cached_spec(call, s, &attention);
  cache_of(dice, call, s, &cache);
  cached_args(dice, call, s, &attention_args);
  attention_args.cache = &cache;
  spec.attention = &attention, spec.embed_dim = embed, args.attention = &attention_args;
  call->number(&spec.embed_dim);
  call->choice(&spec.norm);
  call->choice(&spec.norm_across_heads);
  for (std::size_t* field : {&spec.struct_size, &args.struct_size}) call->size(field);
  call->floats(&spec.query, {s.heads * s.width, embed});
  call->floats(&spec.key, {s.kv_heads * s.width, embed});
  call->floats(&spec.value, {s.kv_heads * s.width, embed});
  call->floats(&spec.output, {embed, s.heads * s.width});
  if (dice->one_in(3)) call->floats(&spec.query_bias, {s.heads * s.width});
  call->floats(&args.x, {s.tokens, embed});
  if (dice->one_in(3)) call->floats(&args.residual, {s.tokens, embed});
  call->floats(&args.out, {s.tokens, embed}, CRole::kOut);
  call->make();
  headway_cached_layer* object = nullptr;
  const headway_status made = headway_cached_layer_create(&spec, &object);
  return use<headway_cached_layer>(
      made, object, {headway_cached_layer_workspace_bytes, headway_cached_layer_destroy, headway_cached_layer_explain},
      [&](auto* o, void* workspace) { return headway_cached_layer_run(o, &args, workspace, nullptr); });
}

}  // namespace headway::fuzz
