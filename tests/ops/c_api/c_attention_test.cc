// Attention and the layer by the C API give the bits that the C++ classes give.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "headway/attention.h"
#include "headway/multi_head_attention.h"
#include "tests/ops/c_api/c_tensor.h"

namespace headway::testing {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && std::memcmp(a.view().data, b.view().data, tensor_bytes(a.type(), a.dims())) == 0;
}

TEST(CAttention, GivesTheBitsOfTheClass) {
  const Tensor query = random_floats({2, 5, 4, 8}, 1);  // [B, Sq, Hq, D]: read as [B, Hq, Sq, D]
  const Tensor key = random_floats({2, 2, 9, 8}, 2), value = random_floats({2, 2, 9, 6}, 3);
  const Tensor mask = random_floats({5, 9}, 4);
  AttentionSpec spec;
  spec.batch = 2, spec.num_heads = 4, spec.num_kv_heads = 2, spec.query_len = 5, spec.key_len = 9;
  spec.head_dim = 8, spec.value_head_dim = 6, spec.causal = Causal::kBottomRight, spec.window.left = 6;
  spec.mask = MaskKind::kAdditive, spec.softcap = 3, spec.scale = 0.25f;
  spec.scores_output = ScoresOutput::kProbabilities;
  Tensor expected(DataType::kF32, {2, 4, 5, 6}), expected_scores(DataType::kF32, {2, 4, 5, 9});
  const ConstTensorView heads = query.view().permuted({0, 2, 1, 3});
  AttentionArgs args;
  args.query = heads, args.key = key.view(), args.value = value.view(), args.mask = mask.view();
  args.out = expected.view(), args.scores = expected_scores.view();
  Tensor expected_sums(DataType::kF32, {2, 4, 5});
  args.log_sum_exp = expected_sums.view();
  const Attention attention(spec);
  const AlignedBuffer workspace(attention.workspace_bytes(1));
  attention.run(args, workspace.data(), Threads::serial());

  headway_attention_spec c_spec;
  headway_attention_spec_init(&c_spec);
  c_spec.batch = 2, c_spec.num_heads = 4, c_spec.num_kv_heads = 2, c_spec.query_len = 5, c_spec.key_len = 9;
  c_spec.head_dim = 8, c_spec.value_head_dim = 6;
  c_spec.rules.causal = HEADWAY_CAUSAL_BOTTOM_RIGHT, c_spec.rules.window_left = 6;
  c_spec.rules.mask = HEADWAY_MASK_ADDITIVE, c_spec.rules.softcap = 3, c_spec.rules.scale = 0.25f;
  c_spec.rules.scores_output = HEADWAY_SCORES_PROBABILITIES;
  headway_attention* c_attention = nullptr;
  ASSERT_EQ(headway_attention_create(&c_spec, &c_attention), HEADWAY_OK) << headway_last_error();
  size_t bytes = 0, text_bytes = 0;
  ASSERT_EQ(headway_attention_workspace_bytes(c_attention, 1, &bytes), HEADWAY_OK);
  EXPECT_EQ(bytes, attention.workspace_bytes(1));
  void* const c_workspace = headway_allocate(bytes);
  Tensor out(DataType::kF32, {2, 4, 5, 6}), scores(DataType::kF32, {2, 4, 5, 9});
  CTensor c_query(heads);
  c_query.tensor.data = static_cast<char*>(c_query.tensor.data) - 64;
  c_query.tensor.byte_offset = 64;
  CTensor c_key(key.view());
  c_key.tensor.strides = nullptr;
  const CTensor c_value(value.view()), c_mask(mask.view()), c_out(out.view()), c_scores(scores.view());
  Tensor sums(DataType::kF32, {2, 4, 5});
  const CTensor c_sums(sums.view());
  headway_attention_args c_args;
  headway_attention_args_init(&c_args);
  c_args.query = c_query.get(), c_args.key = c_key.get(), c_args.value = c_value.get(), c_args.mask = c_mask.get();
  c_args.out = c_out.get(), c_args.scores = c_scores.get(), c_args.log_sum_exp = c_sums.get();
  ASSERT_EQ(headway_attention_run(c_attention, &c_args, c_workspace, nullptr), HEADWAY_OK) << headway_last_error();
  EXPECT_TRUE(same_bits(sums, expected_sums));
  EXPECT_TRUE(same_bits(out, expected));
  EXPECT_TRUE(same_bits(scores, expected_scores));

  ASSERT_EQ(headway_attention_explain(c_attention, nullptr, 0, &text_bytes), HEADWAY_OK);
  std::string text(text_bytes, 'x');
  ASSERT_EQ(headway_attention_explain(c_attention, text.data(), text.size(), nullptr), HEADWAY_OK);
  EXPECT_EQ(text.c_str(), attention.explain());
  char start[5];
  ASSERT_EQ(headway_attention_explain(c_attention, start, sizeof(start), nullptr), HEADWAY_OK);
  EXPECT_EQ(start, attention.explain().substr(0, 4));
  headway_free(c_workspace);
  headway_attention_destroy(c_attention);
}

TEST(CMultiHeadAttention, GivesTheBitsOfTheClass) {
  const Tensor x = random_floats({2, 7, 16}, 1), in = random_floats({48, 16}, 2),
               out_weight = random_floats({16, 16}, 3);
  const Tensor bias = random_floats({48}, 4);
  MultiHeadAttentionSpec spec;
  spec.batch = 2, spec.query_len = 7, spec.embed_dim = 16, spec.num_heads = 4, spec.self_attention = true;
  MultiHeadAttentionWeights weights;
  split_in_proj(in.view(), bias.view(), &weights);
  weights.output = out_weight.view();
  const MultiHeadAttention layer(spec, weights);
  Tensor expected(DataType::kF32, {2, 7, 16});
  MultiHeadAttentionArgs args;
  args.query = args.key = args.value = x.view();
  args.out = expected.view();
  const AlignedBuffer workspace(layer.workspace_bytes(1));
  layer.run(args, workspace.data(), Threads::serial());

  headway_multi_head_attention_spec c_spec;
  headway_multi_head_attention_spec_init(&c_spec);
  c_spec.batch = 2, c_spec.query_len = 7, c_spec.embed_dim = 16, c_spec.num_heads = 4, c_spec.self_attention = 1;
  const CTensor query(weights.query), key(weights.key), value(weights.value), output(weights.output);
  const CTensor query_bias(weights.query_bias), key_bias(weights.key_bias), value_bias(weights.value_bias);
  headway_multi_head_attention_weights c_weights;
  headway_multi_head_attention_weights_init(&c_weights);
  c_weights.query = query.get(), c_weights.key = key.get(), c_weights.value = value.get();
  c_weights.output = output.get(), c_weights.query_bias = query_bias.get(), c_weights.key_bias = key_bias.get();
  c_weights.value_bias = value_bias.get();
  headway_multi_head_attention *first = nullptr, *c_layer = nullptr;
  ASSERT_EQ(headway_multi_head_attention_create(&c_spec, &c_weights, nullptr, &first), HEADWAY_OK);
  ASSERT_EQ(headway_multi_head_attention_create(&c_spec, &c_weights, first, &c_layer), HEADWAY_OK);
  headway_multi_head_attention_destroy(first);
  headway_threads* threads = nullptr;
  ASSERT_EQ(headway_threads_create_pool(2, &threads), HEADWAY_OK);
  EXPECT_EQ(headway_threads_workers(threads), 2);
  size_t bytes = 0;
  ASSERT_EQ(headway_multi_head_attention_workspace_bytes(c_layer, 2, &bytes), HEADWAY_OK);
  void* const c_workspace = headway_allocate(bytes);
  Tensor out(DataType::kF32, {2, 7, 16});
  const CTensor c_x(x.view()), c_out(out.view());
  headway_multi_head_attention_args c_args;
  headway_multi_head_attention_args_init(&c_args);
  c_args.query = c_args.key = c_args.value = c_x.get();
  c_args.out = c_out.get();
  ASSERT_EQ(headway_multi_head_attention_run(c_layer, &c_args, c_workspace, threads), HEADWAY_OK)
      << headway_last_error();
  EXPECT_TRUE(same_bits(out, expected));
  size_t needed = 0;
  ASSERT_EQ(headway_multi_head_attention_explain(c_layer, nullptr, 0, &needed), HEADWAY_OK);
  EXPECT_EQ(needed, layer.explain().size() + 1);
  headway_free(c_workspace);
  headway_threads_destroy(threads);
  headway_multi_head_attention_destroy(c_layer);
}

// A host's pool in C that runs all tasks on the calling thread, and one that throws although it must not.
TEST(CThreads, AHostsPool) {
  int calls = 0;
  headway_threads* threads = nullptr;
  const headway_parallel_for on_this_thread = [](void* host, int64_t tasks, headway_task run, void* context) {
    ++*static_cast<int*>(host);
    for (int64_t task = 0; task < tasks; ++task) run(context, task, 0);
  };
  ASSERT_EQ(headway_threads_create_host(3, on_this_thread, &calls, &threads), HEADWAY_OK);
  EXPECT_EQ(headway_threads_workers(threads), 3);
  const Tensor out_a = random_floats({500, 40}, 1), lse_a = random_floats({500}, 2);
  Tensor out(DataType::kF32, {500, 40}), lse(DataType::kF32, {500});
  const CTensor a(out_a.view()), la(lse_a.view()), o(out.view()), l(lse.view());
  ASSERT_EQ(headway_merge(a.get(), la.get(), a.get(), la.get(), o.get(), l.get(), threads), HEADWAY_OK)
      << headway_last_error();
  EXPECT_GT(calls, 0);
  EXPECT_NEAR(lse.data<float>()[7], lse_a.data<float>()[7] + std::log(2.0f), 1e-6);
  headway_threads_destroy(threads);

  const headway_parallel_for throwing = [](void*, int64_t, headway_task, void*) { throw std::runtime_error("burnt"); };
  ASSERT_EQ(headway_threads_create_host(3, throwing, nullptr, &threads), HEADWAY_OK);
  EXPECT_EQ(headway_merge(a.get(), la.get(), a.get(), la.get(), o.get(), l.get(), threads), HEADWAY_INTERNAL);
  EXPECT_STREQ(headway_last_error(), "burnt");
  headway_threads_destroy(threads);
  EXPECT_EQ(headway_threads_workers(nullptr), 1);
}

}  // namespace
}  // namespace headway::testing
