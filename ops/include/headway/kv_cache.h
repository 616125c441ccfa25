// Key/value caches as engines lay them out, the rotation of heads by their position, and appending projected rows to a
// cache. The engine owns the memory; nothing here allocates it. Usable with no graph.
//
// Letters: T tokens of a call, B sequences, Hq query heads, Hkv key/value heads, D head width of query and key,
//          Dv head width of value, M positions of a slot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headway/export.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// Views of one layer's cache. Position p of sequence b lies in
///   slot `slots[b]` (absent: b), row p, of caches [slots, Hkv, M, D];
///   block block_table[b][p / block], row p % block, of paged caches [blocks, Hkv, block, D];
/// with `ring` in the row of p mod M, or in a paged cache of p mod (n · block). Strides are free but for the innermost
/// one, which is 1: [slots, M, Hkv, D] is a permuted view. Sequences may share blocks.
struct KvCache {
  TensorView key;               // [slots, Hkv, M, D] or [blocks, Hkv, block, D]; f32, bf16 or f16
  TensorView value;             // [slots, Hkv, M, Dv] or [blocks, Hkv, block, Dv]; type of key
  ConstTensorView key_scale;    // of an i8 cache, which is not supported yet: absent
  ConstTensorView value_scale;  // of an i8 cache, which is not supported yet: absent
  ConstTensorView slots;        // [B] i32; absent: sequence b has slot b
  ConstTensorView block_table;  // [B, n] i32; present: paged. Entries beyond length and window are not looked at
  bool ring = false;            ///< the newest M positions are there, older ones are overwritten and seen by nobody
};

/// How the frequencies of a rotation are stretched for longer contexts than a model was trained on.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,  ///< positions divided by factor
    kNtk,     ///< base · factor^(r / (r − 2))
    kYarn,    ///< a blend by frequency, and cosines and sines times attention_factor
    kLlama3,  ///< three bands by wavelength
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  double original_max_position = 0;        ///< yarn and llama3: the length trained on
  double beta_fast = 32;                   ///< yarn: rotations over that length beyond which nothing is scaled
  double beta_slow = 1;                    ///< yarn: rotations below which all is
  std::optional<double> attention_factor;  ///< yarn; nullopt: 0.1·ln(factor) + 1
  double low_freq_factor = 1;              ///< llama3
  double high_freq_factor = 4;             ///< llama3
};

struct RotarySpec {
  std::int64_t rotary_dim = 0;  ///< r: even, at most D; dimensions from r on pass through
  std::int64_t positions = 0;   ///< positions [0, positions) are tabulated
  double base = 10000;
  bool interleaved = false;  ///< pairs (2k, 2k + 1), as GPT-J; else (k, k + r/2), as Hugging Face
  RotaryScaling scaling;
};

/// Cosines and sines of every position and pair, computed once in double. Immutable.
class HEADWAY_API RotaryTable {
 public:
  /// Throws kInvalidArgument naming the field.
  explicit RotaryTable(const RotarySpec& spec);
  /// Of an engine's own cosines and sines, [positions, r / 2] f32 each, which are copied.
  RotaryTable(const ConstTensorView& cos, const ConstTensorView& sin, bool interleaved);

  std::int64_t rotary_dim() const { return 2 * pairs_; }
  std::int64_t positions() const { return positions_; }
  bool interleaved() const { return interleaved_; }
  const float* cos(std::int64_t position) const { return cos_.data() + position * pairs_; }  // [r / 2]
  const float* sin(std::int64_t position) const { return sin_.data() + position * pairs_; }  // [r / 2]

 private:
  void allocate();

  std::int64_t pairs_;
  std::int64_t positions_;
  bool interleaved_;
  std::vector<float> cos_, sin_;
};

/// y = x / sqrt(mean(x²) + epsilon) · (weight_offset + weight) over a head's D dimensions, or over all heads of a
/// token.
struct HeadNorm {
  bool enabled = false;
  float epsilon = 1e-6f;
  float weight_offset = 0;       ///< 1 for Gemma, whose weights are stored less 1
  bool across_heads = false;     ///< the mean and the weights run over all heads: OLMo 2
  ConstTensorView query_weight;  // [D] f32, or [Hq·D] across heads; absent: 1
  ConstTensorView key_weight;    // [D] f32, or [Hkv·D] across heads; absent: 1
};

/// The projected rows of a call: token t of sequence b, of which query_starts[b] ≤ t < query_starts[b + 1], goes to
/// position lengths[b] − query_starts[b + 1] + t. Where tokens have rows of their own, `slot_mapping` gives them.
struct AppendArgs {
  ConstTensorView key;           // [T, Hkv, D] f32, bf16 or f16; absent with value: the query alone
  ConstTensorView value;         // [T, Hkv, Dv], type of key
  ConstTensorView query_starts;  // [B + 1] i32; absent: T == B
  ConstTensorView lengths;       // [B] i32, this call's tokens included; absent with slot_mapping
  ConstTensorView slot_mapping;  // [T] i32 or i64: slot · M + row, or block · block size + row; −1: written nowhere
  ConstTensorView positions;     // [T] i32 that the rotation takes; absent: the positions in the cache
  TensorView query;              // [T, Hq, D], normalised and rotated in place; absent: left alone
  const RotaryTable* rotary = nullptr;
  HeadNorm norm;  ///< before the rotation
};

/// Writes projected keys and values into a cache, in one pass over their rows: norm and rotation of the keys,
/// conversion to the cache's type; and norm and rotation of the queries in place. Arithmetic is f32, rounded once.
/// With a ring of M rows, of more than M tokens of a sequence the last M are written.
/// Throws Error kInvalidArgument naming the argument and both numbers, before anything is written. Two tokens must not
/// have the same row. Re-entrant; allocates nothing. The same bits at any number of threads.
HEADWAY_API void append(const AppendArgs& args, const KvCache& cache, const Threads& threads);

}  // namespace headway
