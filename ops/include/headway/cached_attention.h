// Attention over a key/value cache, the way a decoder engine calls it: one object per model, any mixture of prefill
// chunks, decodes and speculation in one call, contiguous, paged and ring caches. Usable with no graph. Knows nothing
// of projections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headway/attention.h"
#include "headway/export.h"
#include "headway/kv_cache.h"
#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// What a model's attention is, without lengths. nullopt is the default that the field's comment names.
struct CachedAttentionSpec {
  DataType type = DataType::kF32;                             ///< of query and out: f32, bf16 or f16
  DataType cache_type = DataType::kF32;                       ///< of key and value: f32, bf16 or f16
  std::int64_t num_heads = 1;                                 ///< Hq
  std::optional<std::int64_t> num_kv_heads = std::nullopt;    ///< Hkv, which divides num_heads; nullopt: num_heads
  std::int64_t head_dim = 0;                                  ///< D
  std::optional<std::int64_t> value_head_dim = std::nullopt;  ///< Dv; nullopt: head_dim
  std::optional<float> scale = std::nullopt;  ///< nullopt: 1/√head_dim; applied to the query before the product
  float softcap = 0;                          ///< 0: off; else c·tanh(s/c), before biases and masks
  bool causal = true;                         ///< a token sees no position after its own
  Window window;                              ///< around a token's position, both ends inclusive
  /// A row's bits then depend on its own query and keys alone: not on what else is in the batch, on paging, slots or
  /// how a prefill was cut into chunks, down to chunks of one token. Costs: keys of few rows are transposed before they
  /// are multiplied, and contexts are added up every 256 keys. Not held: the last bits of rows beside which NaN or
  /// infinity lies in keys and values that are hidden from them.
  bool batch_invariant = false;
  // Bounds of the arguments, which book the workspace and decide nothing else.
  std::int64_t max_batch = 1;   ///< sequences of a call
  std::int64_t max_tokens = 1;  ///< query tokens of a call
  std::int64_t max_cache = 0;   ///< positions of a sequence
};

/// The tensors of one call. Of sequence b the tokens are query[query_starts[b]] … query[query_starts[b + 1] − 1]; they
/// have the last positions of its lengths[b], so that their own keys and values are in the cache already. Positions
/// before 0 see nothing when causal.
struct CachedAttentionArgs {
  ConstTensorView query;         // [T, Hq, D], innermost stride 1
  ConstTensorView query_starts;  // [B + 1] i32, from 0 to T; absent: T == B, a token per sequence
  ConstTensorView lengths;       // [B] i32: positions of the sequence, this call's tokens included
  KvCache cache;                 ///< read only
  ConstTensorView sinks;         // [Hq] f32: a logit that takes part in the denominator alone
  ConstTensorView alibi_slopes;  // [Hq] f32: −slope·|p − j| is added to the score of position p and key j
  ConstTensorView relative_bias;  // [n, Hq] f32: row p − j + relative_bias_future is added, the nearest row beyond both
                                  // ends; relative_bias_by_distance() makes it of T5's buckets
  std::int64_t relative_bias_future = 0;  ///< rows of relative_bias for keys after the query
  /// [T, W] for keys mask_starts[b] … mask_starts[b] + W − 1 of the token's sequence: bool, true takes part; f32,
  /// added; or u8, keys packed by bits from the lowest on, W being eight times its last dim. Keys before them are not
  /// masked, keys beyond them are hidden. A tree of drafts masks its own tokens: mask_starts[b] = lengths[b] − tokens.
  ConstTensorView mask;
  ConstTensorView mask_starts;  // [B] i32; absent: 0
  TensorView out;          // [T, Hq, Dv], innermost stride 1; may be the query itself when Dv = D, else apart from it
  TensorView log_sum_exp;  // [T, Hq] f32: log of the softmax's denominator, sinks included; −inf for an empty row
};

/// How a call would be cut into tasks: by shapes, lengths and spec alone, never by threads.
struct CachedAttentionPlan {
  std::int64_t tasks = 0;            ///< units of parallelism of the main pass
  std::int64_t few_query_tasks = 0;  ///< of them those whose rows share each reading of a key, as decoding does
  std::int64_t split_keys = 0;       ///< keys of a split: they begin at multiples of it
  std::int64_t split_sequences = 0;  ///< sequences whose keys are split
};

/// out[t, h] = softmax(scale·q·kᵀ + biases)·v over the keys that token t sees in the cache.
///
/// Numerics: as Attention, within headway/numerical_bound.h of the exact result on the inputs as stored, plus half a
/// step of the type of `out`; log_sum_exp within ε·(4 + ln(keys) + 4·M), M as there. A row that sees no key gives 0 and
/// −inf (with a sink, the sink). NaN in a visible score gives NaN in that row; other rows of the cache are never read,
/// whatever they hold. The same bits at any number of threads.
/// Throws Error kInvalidArgument naming the argument and both numbers before anything is read or written (lengths and
/// tables excepted); the constructor also kUnsupported for types that are not computed in.
/// Thread-safe with distinct workspaces; run allocates nothing. One that was moved from can be assigned to and
/// destroyed, nothing else.
/// Cost: 2·(D + Dv) flops and an exp per head, token and visible key; keys and values are read once per key/value head
/// for the query heads that share it.
class HEADWAY_API CachedAttention {
 public:
  explicit CachedAttention(const CachedAttentionSpec& spec);
  ~CachedAttention();
  CachedAttention(CachedAttention&&) noexcept;
  CachedAttention& operator=(CachedAttention&&) noexcept;

  const CachedAttentionSpec& spec() const;  ///< with the defaults filled in
  /// SIMD target, tiles, key blocks, bytes.
  std::string explain() const;
  /// Checks the arguments as run() does.
  CachedAttentionPlan plan(const CachedAttentionArgs& args) const;
  std::size_t workspace_bytes(int workers) const;
  /// `workspace` is 64-byte aligned and holds workspace_bytes(threads.workers()).
  void run(const CachedAttentionArgs& args, std::byte* workspace, const Threads& threads,
           Profiler* profiler = nullptr) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Results of the same rows over two disjoint sets of keys, made one: out = Σ exp(lse_i − lse)·out_i. Rows are of any
/// rank and strides alike: out [.., Dv] f32, bf16 or f16, log_sum_exp [..] f32. `out` and `log_sum_exp` may be those of
/// a part. Where sinks take part, exactly one part had them. Relative error ε·(8 + |lse|) besides that of the parts.
struct PartialAttention {
  ConstTensorView out;          // [.., Dv]
  ConstTensorView log_sum_exp;  // [..]
};
HEADWAY_API void merge(const PartialAttention& a, const PartialAttention& b, const TensorView& out,
                       const TensorView& log_sum_exp, const Threads& threads);

/// T5's bias per bucket [buckets, Hq] as CachedAttentionArgs takes it, per distance: `to` is [n, Hq] f32, n =
/// max_distance + 1 + future, and its row r is that of a key p − r + future. `bidirectional`: half of the buckets are
/// for keys after the query; `future` is then max_distance, else 0.
HEADWAY_API void relative_bias_by_distance(const ConstTensorView& buckets, std::int64_t max_distance,
                                           bool bidirectional, const TensorView& to);

}  // namespace headway
