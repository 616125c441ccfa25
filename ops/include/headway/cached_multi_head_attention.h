// One call a decoder layer: projections, norm and rotation of heads, appending to the cache in place, attention over
// it, output projection and residual. Usable with no graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headway/cached_attention.h"
#include "headway/export.h"
#include "headway/kv_cache.h"
#include "headway/packed_matmul.h"

namespace headway {

/// Sizes and rules of the layer, without lengths. `attention.type` is f32; the cache has attention.cache_type.
struct CachedMultiHeadAttentionSpec {
  CachedAttentionSpec attention;
  std::int64_t embed_dim = 0;           ///< E, of x and out
  HeadNorm norm;                        ///< of query and key before the rotation; its weights are copied
  const RotaryTable* rotary = nullptr;  ///< outlives the layer; null: no rotation
};

/// Weights as views, y = x·Wᵀ + b, f32 or bf16 (query, key and value alike), any strides; biases are f32 or of their
/// weight's type. Packed at construction, query, key and value as one; not needed afterwards.
struct CachedMultiHeadAttentionWeights {
  ConstTensorView query;                                          ///< [Hq·D, E]
  ConstTensorView key;                                            ///< [Hkv·D, E]
  ConstTensorView value;                                          ///< [Hkv·Dv, E]
  ConstTensorView output;                                         ///< [E, Hq·Dv]
  ConstTensorView query_bias, key_bias, value_bias, output_bias;  ///< [rows of the weight]; each may be absent
};

/// The tensors of one call.
struct CachedMultiHeadAttentionArgs {
  ConstTensorView x;  // [T, E] f32
  CachedAttentionArgs
      attention;                 ///< lengths with this call's tokens, cache, masks and biases; query and out are absent
  KvCache cache;                 ///< written at this call's positions, then read; attention.cache is absent
  ConstTensorView slot_mapping;  // as AppendArgs
  ConstTensorView positions;     // as AppendArgs
  ConstTensorView residual;      // [T, E] f32, added to the result; may be out
  TensorView out;                // [T, E] f32, apart from x
};

/// out = residual + attention(rotate(norm(x·Wqᵀ)), cache ∪ {rotate(norm(x·Wkᵀ)), x·Wvᵀ})·Woᵀ, with the rules of
/// CachedAttention, append() and PackedMatmul for numerics and errors.
///
/// Any number of tokens up to attention.max_tokens in any mixture of sequences; run plans nothing and allocates
/// nothing. The same bits at any number of threads; with attention.batch_invariant a token's bits depend on its own
/// sequence alone. Throws Error kInvalidArgument naming the argument and both numbers before anything is written, the
/// cache included; the constructor also kUnsupported for types and kOutOfMemory.
/// Thread-safe with distinct workspaces and caches.
/// Cost: 2·T·E·(2·Hq·D + 2·Hkv·D) flops, D = Dv, besides those of the attention.
class HEADWAY_API CachedMultiHeadAttention {
 public:
  CachedMultiHeadAttention(const CachedMultiHeadAttentionSpec& spec, const CachedMultiHeadAttentionWeights& weights);
  ~CachedMultiHeadAttention();
  CachedMultiHeadAttention(CachedMultiHeadAttention&&) noexcept;
  CachedMultiHeadAttention& operator=(CachedMultiHeadAttention&&) noexcept;

  const CachedMultiHeadAttentionSpec& spec() const;  ///< with the defaults filled in
  /// A line for each of the projection, the attention and the output.
  std::string explain() const;
  std::size_t workspace_bytes(int workers) const;
  /// `workspace` is 64-byte aligned and holds workspace_bytes(threads.workers()).
  void run(const CachedMultiHeadAttentionArgs& args, std::byte* workspace, const Threads& threads,
           Profiler* profiler = nullptr) const;

 private:
  struct HEADWAY_PRIVATE Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace headway
