// Calls without a cache.
#include "tests/fuzz/c_calls.h"

#include "headway/headway_layer.h"
#include "tests/fuzz/c_problem.h"

namespace headway::fuzz {
namespace {

void rules(CCall* call, headway_attention_rules* rules) {
  call->real(&rules->scale);
  call->real(&rules->softcap);
  call->number(&rules->window_left);
  call->number(&rules->window_right);
  for (std::int32_t* field : {&rules->causal, &rules->mask, &rules->key_mask, &rules->mask_polarity,
                              &rules->key_lengths, &rules->empty_row, &rules->scores_output}) {
    call->choice(field);
  }
}

}  // namespace

headway_status call_attention(Dice* dice, CCall* call) {
  const Sizes s(dice);
  headway_attention_spec spec;
  headway_attention_args args;
  headway_attention_spec_init(&spec);
  headway_attention_args_init(&args);
  spec.batch = s.batch, spec.num_heads = s.heads, spec.num_kv_heads = s.kv_heads;
  spec.query_len = s.tokens, spec.key_len = s.rows, spec.head_dim = s.width;
  spec.rules.causal = static_cast<std::int32_t>(dice->below(3));
  rules(call, &spec.rules);
  for (std::int64_t* field : {&spec.batch, &spec.num_heads, &spec.num_kv_heads, &spec.query_len, &spec.key_len,
                              &spec.head_dim, &spec.value_head_dim, &spec.always_visible_keys}) {
    call->number(field);
  }
  call->choice(&spec.type);
  call->size(&spec.struct_size);
  call->size(&args.struct_size);
  call->floats(&args.query, {s.batch, s.heads, s.tokens, s.width});
  call->floats(&args.key, {s.batch, s.kv_heads, s.rows, s.width});
  call->floats(&args.value, {s.batch, s.kv_heads, s.rows, s.width});
  call->floats(&args.out, {s.batch, s.heads, s.tokens, s.width}, CRole::kOut);
  if (dice->one_in(2)) call->floats(&args.log_sum_exp, {s.batch, s.heads, s.tokens}, CRole::kOut);
  if (dice->one_in(3)) {
    spec.rules.mask = HEADWAY_MASK_BOOL;
    call->tensor(&args.mask, 6, 8, {s.tokens, s.rows}, CRole::kBools);
  }
  if (dice->one_in(3)) {
    spec.rules.key_lengths = 1;
    call->indices(&args.key_lengths, {s.batch}, s.rows + 1);
  }
  if (dice->one_in(4)) {
    spec.rules.scores_output = HEADWAY_SCORES_PROBABILITIES;
    call->floats(&args.scores, {s.batch, s.heads, s.tokens, s.rows}, CRole::kOut);
  }
  call->make();
  headway_attention* object = nullptr;
  const headway_status made = headway_attention_create(&spec, &object);
  return use<headway_attention>(
      made, object, {headway_attention_workspace_bytes, headway_attention_destroy, headway_attention_explain},
      [&](auto* o, void* workspace) { return headway_attention_run(o, &args, workspace, nullptr); });
}

headway_status call_multi_head_attention(Dice* dice, CCall* call) {
  const Sizes s(dice);
  const std::int64_t embed = s.heads * s.width;
  headway_multi_head_attention_spec spec;
  headway_multi_head_attention_weights weights;
  headway_multi_head_attention_args args;
  headway_multi_head_attention_spec_init(&spec);
  headway_multi_head_attention_weights_init(&weights);
  headway_multi_head_attention_args_init(&args);
  spec.batch = s.batch, spec.query_len = s.tokens, spec.key_len = s.rows, spec.embed_dim = embed;
  spec.num_heads = s.heads, spec.num_kv_heads = s.kv_heads;
  rules(call, &spec.rules);
  for (std::int64_t* field : {&spec.batch, &spec.query_len, &spec.key_len, &spec.embed_dim, &spec.kdim, &spec.vdim,
                              &spec.num_heads, &spec.num_kv_heads, &spec.head_dim, &spec.value_head_dim}) {
    call->number(field);
  }
  for (std::int32_t* field : {&spec.type, &spec.add_zero_attention, &spec.self_attention}) call->choice(field);
  for (std::size_t* field : {&spec.struct_size, &weights.struct_size, &args.struct_size}) call->size(field);
  call->floats(&weights.query, {embed, embed});
  call->floats(&weights.key, {s.kv_heads * s.width, embed});
  call->floats(&weights.value, {s.kv_heads * s.width, embed});
  call->floats(&weights.output, {embed, embed});
  if (dice->one_in(2)) call->floats(&weights.query_bias, {embed});
  if (dice->one_in(2)) call->floats(&weights.output_bias, {embed});
  if (dice->one_in(4)) {
    call->floats(&weights.bias_k, {s.kv_heads * s.width});
    call->floats(&weights.bias_v, {s.kv_heads * s.width});
  }
  call->floats(&args.query, {s.batch, s.tokens, embed});
  call->floats(&args.key, {s.batch, s.rows, embed});
  call->floats(&args.value, {s.batch, s.rows, embed});
  call->floats(&args.out, {s.batch, s.tokens, embed}, CRole::kOut);
  call->make();
  headway_multi_head_attention* object = nullptr;
  const headway_status made = headway_multi_head_attention_create(&spec, &weights, nullptr, &object);
  return use<headway_multi_head_attention>(
      made, object,
      {headway_multi_head_attention_workspace_bytes, headway_multi_head_attention_destroy,
       headway_multi_head_attention_explain},
      [&](auto* o, void* workspace) { return headway_multi_head_attention_run(o, &args, workspace, nullptr); });
}

headway_status call_merge(Dice* dice, CCall* call) {
  const Sizes s(dice);
  const headway_tensor *parts[4] = {}, *out = nullptr, *log_sum_exp = nullptr;
  for (int i = 0; i < 2; ++i) {
    call->floats(&parts[2 * i], {s.tokens, s.heads, s.width});
    call->floats(&parts[2 * i + 1], {s.tokens, s.heads});
  }
  call->floats(&out, {s.tokens, s.heads, s.width}, CRole::kOut);
  call->floats(&log_sum_exp, {s.tokens, s.heads}, CRole::kOut);
  call->make();
  return headway_merge(parts[0], parts[1], parts[2], parts[3], out, log_sum_exp, nullptr);
}

headway_status call_packed_matmul(Dice* dice, CCall* call) {
  const Sizes s(dice);
  const std::int64_t columns = dice->between(1, 40), depth = dice->between(1, 20);
  headway_packed_matmul_spec spec;
  headway_packed_matmul_args args;
  headway_packed_matmul_spec_init(&spec);
  headway_packed_matmul_args_init(&args);
  spec.columns = columns, spec.depth = depth;
  call->number(&spec.columns);
  call->number(&spec.depth);
  call->choice(&spec.activation);
  for (std::size_t* field : {&spec.struct_size, &args.struct_size}) call->size(field);
  call->floats(&spec.weight, {columns, depth});
  if (dice->one_in(2)) call->floats(&spec.bias, {columns});
  if (dice->one_in(3)) call->floats(&spec.gate, {columns, depth});
  call->floats(&args.x, {s.tokens, depth});
  if (dice->one_in(3)) call->floats(&args.residual, {s.tokens, columns});
  call->floats(&args.out, {s.tokens, columns}, CRole::kOut);
  call->make();
  headway_packed_matmul* object = nullptr;
  const headway_status made = headway_packed_matmul_create(&spec, &object);
  return use<headway_packed_matmul>(
      made, object,
      {headway_packed_matmul_workspace_bytes, headway_packed_matmul_destroy, headway_packed_matmul_explain},
      [&](auto* o, void* workspace) { return headway_packed_matmul_run(o, &args, workspace, nullptr); });
}

}  // namespace headway::fuzz
