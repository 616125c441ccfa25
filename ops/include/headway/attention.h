// Scaled dot-product attention, the core alone: spec (plain data), plan (checked, packed, explained), run (re-entrant).
// Usable with no graph. Knows nothing of projections.
//
// Letters: B batch, Hq query heads, Hkv key/value heads, G = Hq / Hkv, Sq query length, Skv key length,
//          D head width of query and key, Dv head width of value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headway/export.h"
#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// Where the causal diagonal lies: query i sees key j when j ≤ i + offset.
enum class Causal {
  kNone,
  kTopLeft,      ///< offset 0 (torch is_causal)
  kBottomRight,  ///< offset Skv − always_visible_keys − Sq (Hugging Face), whatever the lengths are
  kOffset,       ///< an offset per batch, given at run time; may be negative
  kLastKey,  ///< offset n − Sq: the last query sees the last of the batch's n = key_lengths[b] keys (flash-attention);
             ///< kBottomRight where no lengths are given
};

/// Keys around p = i + offset: p − left ≤ j ≤ p + right, both ends inclusive, or kOpen. The offset is the causal
/// one; without causality it is 0, unless offsets are given at run time.
struct Window {
  static constexpr std::int64_t kOpen =
      -1;  ///< no end on that side; a value as any other, no default of something else
  std::int64_t left = kOpen;
  std::int64_t right = kOpen;
};

enum class MaskKind {
  kNone,
  kBool,      ///< bool elements; polarity says what true means
  kAdditive,  ///< f32 elements, or bf16 ones beside bf16 tensors, added to the scores; −inf hides
};
enum class MaskPolarity {
  kTrueAttends,  ///< torch SDPA, ONNX, Hugging Face
  kTrueHides,    ///< torch.nn.MultiheadAttention
};
/// Output of a row whose every bias is −inf. Where there is no key at all it is 0.
enum class EmptyRow { kZero, kNan };

/// What to write besides the output. Modes 0 and 1 are of every key below Skv, hidden or not: with them, and only
/// with them, all keys are read.
enum class ScoresOutput {
  kNone,
  kScaled,             ///< mode 0: scale · q·kᵀ
  kSoftcapped,         ///< mode 1: after softcap
  kBiased,             ///< mode 2: after softcap and every mask; −inf for a hidden key
  kProbabilities,      ///< mode 3: after softmax; 0 for a hidden key, an empty row by empty_row
  kMeanProbabilities,  ///< averaged over heads: [B, Sq, Skv]
};

/// What attention computes, whatever its sizes: shared by the core and by the layer around it.
struct AttentionRules {
  std::optional<float> scale = std::nullopt;  ///< nullopt: 1/√head_dim; applied to the query before the product; finite
  float softcap = 0;                          ///< 0: off; else c·tanh(s/c), before the masks; finite and not negative
  Causal causal = Causal::kNone;
  Window window;
  MaskKind mask = MaskKind::kNone;      ///< [.., Sq, Skv], rank 1–4, broadcast right-aligned against [B, Hq, Sq, Skv]
  MaskKind key_mask = MaskKind::kNone;  ///< [B, Skv]: key padding
  MaskPolarity mask_polarity = MaskPolarity::kTrueAttends;  ///< of both masks
  bool key_lengths = false;                                 ///< lengths per batch are given at run time
  EmptyRow empty_row = EmptyRow::kZero;
  ScoresOutput scores_output = ScoresOutput::kNone;
};

/// Rules and sizes of the core. nullopt is the default that the field's comment names, and nothing else is: a size of 0
/// is a size of 0.
struct AttentionSpec : AttentionRules {
  DataType type = DataType::kF32;  ///< of query, key, value and out, all four: f32 or bf16
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;                               ///< Hq
  std::optional<std::int64_t> num_kv_heads = std::nullopt;  ///< Hkv, which divides num_heads; nullopt: num_heads
  std::int64_t query_len = 0;
  std::int64_t key_len = 0;
  std::int64_t head_dim = 0;                                  ///< D
  std::optional<std::int64_t> value_head_dim = std::nullopt;  ///< Dv; nullopt: head_dim
  std::int64_t always_visible_keys = 0;  ///< so many last keys are seen by every query (bias_k, zero attention)
};

/// Presets that set alignment, polarity and empty-row rule in one word: "torch_sdpa", "torch_mha", "onnx", "flash".
/// `causal` says whether the layer is causal at all. The other rules stay. Throws kInvalidArgument for another name,
/// listing these.
HEADWAY_API void apply_semantics(std::string_view profile, bool causal, AttentionRules* rules);

/// The tensors of one run. All strides are free; B, H, S, D order is only the order of the view's axes.
struct AttentionArgs {
  ConstTensorView query;        ///< [B, Hq, Sq, D]
  ConstTensorView key;          ///< [B, Hkv, Skv, D]
  ConstTensorView value;        ///< [B, Hkv, Skv, Dv]
  ConstTensorView mask;         ///< see AttentionRules::mask; a last dim n with 1 < n < Skv hides the keys from n on
  ConstTensorView key_mask;     ///< [B, Skv − always_visible_keys] or [B, Skv]
  ConstTensorView key_lengths;  ///< [B] i32 or i64, 0 ≤ n ≤ Skv
  ConstTensorView offsets;      ///< [B] i32 or i64, for Causal::kOffset or a window
  TensorView out;               ///< [B, Hq, Sq, Dv]; must not alias an input
  TensorView scores;            ///< [B, Hq, Sq, Skv] f32, or [B, Sq, Skv] for kMeanProbabilities
  /// [B, Hq, Sq] f32, may be absent: the natural log of the softmax's denominator, Σ exp(score + bias) over the visible
  /// keys; −inf for an empty row, whatever empty_row says. merge() and attention_probabilities() take it.
  TensorView log_sum_exp;
};

struct AttentionOptions {
  /// Forces one implementation by name; empty: HEADWAY_ATTENTION in the environment, else the first that can.
  std::string implementation;
};

/// Scaled dot-product attention: out = softmax(scale · q·kᵀ + bias)·v, per head.
///
/// Numerics: products accumulate in f32; the softmax keeps a running maximum in f32. Rows with no visible key are zero
/// (or NaN, by empty_row), decided on the masks alone. NaN in a visible score gives NaN in that row; hidden keys never
/// reach the output, whatever they hold. |out − exact| ≤ ε·Σ p·|v|·(c1 + c2·max Σ|scale·q·k|), constants in
/// headway/numerical_bound.h. With bf16 tensors everything in between is f32 and exact means on the bf16 inputs: the
/// store adds half a step of bf16, at most 2⁻⁸·|out|, and an implementation that hands its weights to a bf16 product
/// ("bf16_pairs", "onednn_tiles") 2⁻⁸·Σ p·|v|, and takes denormal numbers for 0. Scores are f32 always. log_sum_exp is
/// within ε·(4 + ln(Skv) + 4·M) of the exact one, M = max Σ|scale·q·k|, and 10⁻⁴ more of "bf16_pairs".
/// The same bits at any number of threads.
/// Throws Error kInvalidArgument naming the argument and both numbers, before anything is written; the constructor also
/// kUnsupported for a type that is not computed in and for a forced implementation that refuses the spec.
/// Thread-safe with distinct workspaces; run allocates nothing. One that was moved from can be assigned to and
/// destroyed, nothing else.
/// Cost: 2·B·Hq·Sq·Skv·(D + Dv) flops and B·Hq·Sq·Skv exps, less what causal, window and lengths let it skip.
/// Source: Vaswani et al. 2017, eq. 1; running softmax: Milakov and Gimelshein 2018.
class HEADWAY_API Attention {
 public:
  explicit Attention(const AttentionSpec& spec, const AttentionOptions& options = {});
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  const AttentionSpec& spec() const;  ///< with the defaults filled in: every optional has a value
  /// "few_queries", "bf16_pairs", "tiled", "onednn_tiles", "reference".
  std::string_view implementation() const;
  /// A line: implementation, SIMD target, tiles; then a line for each better implementation, with why not.
  std::string explain() const;
  /// Grows with the workers, not with Sq·Skv.
  std::size_t workspace_bytes(int workers) const;
  /// `workspace` is 64-byte aligned and holds workspace_bytes(threads.workers()); null when that is 0.
  void run(const AttentionArgs& args, std::byte* workspace, const Threads& threads, Profiler* profiler = nullptr) const;

 private:
  friend struct AttentionInternals;
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Names of all implementations, best first.
HEADWAY_API std::vector<std::string> attention_implementations();

/// 2·B·Hq·(D + Dv)·(visible pairs by causal, window and full lengths): the flops that the mathematics needs. Throws
/// what Attention throws for the spec.
HEADWAY_API std::int64_t nominal_attention_flops(const AttentionSpec& spec);

}  // namespace headway
