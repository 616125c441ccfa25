// Multi-head attention: projections, heads, attention, output projection, with weights packed once. Usable with no
// graph. head_i = Attention(x·Wq_i, x·Wk_i, x·Wv_i); out = concat(head_1 … head_h)·Wo; D = E / h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headway/attention.h"
#include "headway/export.h"

namespace headway {

/// Rules of the core and sizes of the layer. nullopt is the default that the field's comment names, and nothing else
/// is.
struct MultiHeadAttentionSpec : AttentionRules {
  DataType type = DataType::kF32;  ///< of inputs, weights, biases and out: f32 or bf16
  std::int64_t batch = 1;
  std::int64_t query_len = 0;
  std::optional<std::int64_t> key_len = std::nullopt;  ///< without what is appended; nullopt: query_len
  std::int64_t embed_dim = 0;                          ///< E, at least 1
  std::optional<std::int64_t> kdim = std::nullopt;     ///< width of key, at least 1; nullopt: embed_dim
  std::optional<std::int64_t> vdim = std::nullopt;     ///< width of value, at least 1; nullopt: embed_dim
  std::int64_t num_heads = 1;
  std::optional<std::int64_t> num_kv_heads = std::nullopt;    ///< at least 1, divides num_heads; nullopt: num_heads
  std::optional<std::int64_t> head_dim = std::nullopt;        ///< at least 1; nullopt: embed_dim / num_heads
  std::optional<std::int64_t> value_head_dim = std::nullopt;  ///< at least 1; nullopt: head_dim
  bool add_zero_attention = false;                            ///< append one key and value of zeros
  bool self_attention = false;  ///< query, key and value are one tensor: the three projections run as one
};

/// Weights as views, y = x·Wᵀ + b, any strides. Packed at construction; not needed afterwards.
struct MultiHeadAttentionWeights {
  ConstTensorView query;                                          ///< [Hq·D, E]
  ConstTensorView key;                                            ///< [Hkv·D, kdim]
  ConstTensorView value;                                          ///< [Hkv·Dv, vdim]
  ConstTensorView output;                                         ///< [E, Hq·Dv]
  ConstTensorView query_bias, key_bias, value_bias, output_bias;  ///< [rows of the weight]; each may be absent
  ConstTensorView bias_k, bias_v;  ///< [Hkv·D], [Hkv·Dv]: appended to the projected key and value; both or neither
};

/// Views of torch's packed in_proj_weight [3E, E] and in_proj_bias [3E] as the three it stands for.
HEADWAY_API void split_in_proj(const ConstTensorView& in_proj_weight, const ConstTensorView& in_proj_bias,
                               MultiHeadAttentionWeights* weights);

/// The tensors of one run.
struct MultiHeadAttentionArgs {
  ConstTensorView query;        ///< [B, Sq, E]; any strides, so [S, B, E] is permuted({1, 0, 2})
  ConstTensorView key;          ///< [B, Skv, kdim]
  ConstTensorView value;        ///< [B, Skv, vdim]
  ConstTensorView mask;         ///< as AttentionArgs::mask, over the Skv given keys; appended keys are always visible
  ConstTensorView key_mask;     ///< [B, Skv]
  ConstTensorView key_lengths;  ///< [B]
  ConstTensorView offsets;      ///< [B]
  TensorView out;               ///< [B, Sq, E]
  TensorView scores;            ///< [B, Hq, Sq, Skv + appended] or [B, Sq, Skv + appended], f32
};

/// Multi-head attention as torch.nn.MultiheadAttention computes it. Contract of `Attention` for numerics, errors,
/// threads and moves. In bf16 all sums are f32; the projected query, key and value, the context and out are rounded to
/// bf16 once each, which is five relative errors of at most 2⁻⁸ on the way to an element: |out − exact| ≤ 2⁻⁸·(|out| +
/// c·‖output weight's row‖·max|value|) on what layers compute, with c in tests. Cost: 2·B·(Sq·Hq·D·E + Skv·Hkv·(D·kdim
/// + Dv·vdim) + Sq·Hq·Dv·E) flops besides those of the core.
class HEADWAY_API MultiHeadAttention {
 public:
  /// `same_weights` is a layer of the very same weights and biases at other sizes: what it has packed is shared where
  /// the layout is the same, and it need not live on. An engine that serves many lengths so holds its weights once.
  /// Throws kOutOfMemory naming the bytes when the packed weights cannot be had.
  MultiHeadAttention(const MultiHeadAttentionSpec& spec, const MultiHeadAttentionWeights& weights,
                     const AttentionOptions& options = {}, const MultiHeadAttention* same_weights = nullptr);
  ~MultiHeadAttention();
  MultiHeadAttention(MultiHeadAttention&&) noexcept;
  MultiHeadAttention& operator=(MultiHeadAttention&&) noexcept;

  const MultiHeadAttentionSpec& spec() const;  ///< with the defaults filled in: every optional has a value
  const Attention& core() const;               ///< lives as long as the layer
  /// A paragraph for each of the projections, the core and the output: which implementation, and why no better one.
  std::string explain() const;
  std::size_t workspace_bytes(int workers) const;
  /// `workspace` is 64-byte aligned and holds workspace_bytes(threads.workers()); null when that is 0.
  void run(const MultiHeadAttentionArgs& args, std::byte* workspace, const Threads& threads,
           Profiler* profiler = nullptr) const;
  /// Parameters: weights, biases, bias_k and bias_v.
  std::int64_t parameters() const;
  /// Flops of the four projections.
  std::int64_t projection_flops() const;

 private:
  struct HEADWAY_PRIVATE Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace headway
