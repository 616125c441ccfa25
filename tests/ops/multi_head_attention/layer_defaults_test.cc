// Defaults and rules of a layer's spec, and moving a layer about.
#include <gtest/gtest.h>

#include <cmath>

#include <utility>
#include <vector>

#include "headway/multi_head_attention.h"
#include "tests/ops/multi_head_attention/layer_case.h"
#include "tests/runtime/error_of.h"

namespace headway::testing {
namespace {

LayerShape small_shape() {
  LayerShape shape;
  shape.spec.query_len = 6;
  shape.spec.embed_dim = 24;
  shape.spec.num_heads = 3;
  shape.spec.self_attention = true;
  return shape;
}

TEST(LayerDefaults, AreFilledIn) {
  LayerCase layer(small_shape());
  const MultiHeadAttention mha(small_shape().spec, layer.weights());
  const MultiHeadAttentionSpec& spec = mha.spec();
  EXPECT_EQ(spec.key_len, 6);
  EXPECT_EQ(spec.kdim, 24);
  EXPECT_EQ(spec.vdim, 24);
  EXPECT_EQ(spec.num_kv_heads, 3);
  EXPECT_EQ(spec.head_dim, 8);
  EXPECT_EQ(spec.value_head_dim, 8);
  EXPECT_EQ(spec.scale, mha.core().spec().scale);
  EXPECT_EQ(mha.core().spec().always_visible_keys, 0);
}

TEST(LayerDefaults, AppendedKeysAreSizesOfTheCoreAlone) {
  LayerShape shape = small_shape();
  shape.bias_kv = true;
  shape.spec.add_zero_attention = true;
  LayerCase layer(shape);
  const MultiHeadAttention mha(shape.spec, layer.weights());
  EXPECT_EQ(mha.spec().key_len, 6);
  EXPECT_EQ(mha.core().spec().key_len, 8);
  EXPECT_EQ(mha.core().spec().always_visible_keys, 2);
}

TEST(LayerDefaults, RulesOfTheLayerAreThoseOfTheCore) {
  LayerShape shape = small_shape();
  shape.spec.causal = Causal::kTopLeft;
  shape.spec.softcap = 2;
  shape.spec.window = {.left = 3, .right = Window::kOpen};
  LayerCase layer(shape);
  const AttentionSpec core = MultiHeadAttention(shape.spec, layer.weights()).core().spec();
  EXPECT_EQ(core.causal, Causal::kTopLeft);
  EXPECT_EQ(core.softcap, 2);
  EXPECT_EQ(core.window.left, 3);
}

TEST(LayerDefaults, ZeroAndNegativeSizesAreRefused) {
  LayerCase layer(small_shape());
  const auto made = [&](auto change) {
    MultiHeadAttentionSpec spec = small_shape().spec;
    change(spec);
    return error_of([&] { const MultiHeadAttention mha(spec, layer.weights()); });
  };
  EXPECT_EQ(made([](auto& s) { s.kdim = 0; }), "kdim is 0, expected at least 1");
  EXPECT_EQ(made([](auto& s) { s.vdim = 0; }), "vdim is 0, expected at least 1");
  EXPECT_EQ(made([](auto& s) { s.num_kv_heads = 0; }), "num_kv_heads is 0, expected at least 1");
  EXPECT_EQ(made([](auto& s) { s.head_dim = 0; }), "head_dim is 0, expected at least 1");
  EXPECT_EQ(made([](auto& s) { s.value_head_dim = 0; }), "value_head_dim is 0, expected at least 1");
  EXPECT_EQ(made([](auto& s) { s.key_len = -1; }), "key_len is -1, expected at least 0");
  expect_contains(made([](auto& s) { s.scale = HUGE_VALF; }), "scale is inf");
}

TEST(MultiHeadAttention, AssignsByMove) {
  LayerCase layer(small_shape());
  MultiHeadAttentionSpec one = small_shape().spec;
  one.query_len = 1;
  MultiHeadAttention mha(one, layer.weights());
  mha = MultiHeadAttention(layer.spec(), layer.weights());
  const AlignedBuffer workspace(mha.workspace_bytes(1));
  const MultiHeadAttentionArgs args = layer.args();
  mha.run(args, workspace.data(), Threads::serial());
  EXPECT_LE(layer.worst_ratio(args), 1);
}

}  // namespace
}  // namespace headway::testing
