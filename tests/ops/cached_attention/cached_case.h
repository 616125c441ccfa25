// A call of CachedAttention with memory of its own, and the exact result in double: keys and values are functions of
// sequence and position, so that calls which cut, page or batch the same sequences otherwise have the same rows. Memory
// that no position owns is NaN. Knows no engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/cached_attention.h"

namespace headway::testing {

/// Rows of a case's relative bias: kRelativePast distances from 0 on, and kRelativeFuture of keys after the query.
inline constexpr std::int64_t kRelativePast = 20, kRelativeFuture = 3;

struct CachedSequence {
  std::uint64_t id;  ///< what its data are made of
  std::int64_t tokens;
  std::int64_t length;
};

enum class CachedMask { kNone, kBool, kFloat, kBits };

struct CachedShape {
  CachedAttentionSpec spec;  ///< max_… are set by the case unless given
  std::vector<CachedSequence> sequences;
  std::int64_t block = 0;     ///< 0: contiguous
  std::int64_t ring = 0;      ///< rows of a ring, 0: none
  bool heads_inside = false;  ///< [slots, M, Hkv, D] in memory
  bool slots = false;         ///< sequences lie in slots in another order
  bool sinks = false;
  bool alibi = false;
  bool relative_bias = false;
  CachedMask mask = CachedMask::kNone;
  bool tree = false;  ///< the mask covers the last keys only: as many as tokens
  bool out_is_query = false;
  bool query_starts = true;  ///< false: absent, one token per sequence
};

class CachedCase {
 public:
  explicit CachedCase(const CachedShape& shape);

  const CachedShape& shape() const { return shape_; }
  /// Of this case's own memory.
  CachedAttentionArgs args();
  /// Fills the query anew (out may have been written over it), poisons out and runs.
  void run(const CachedAttention& attention, const Threads& threads);
  /// With an object and a workspace made for it.
  void run(const Threads& threads);

  /// Rows of the output of the last run, as f32: [T, Hq, Dv] and [T, Hq].
  std::vector<float> out() const;
  const std::vector<float>& log_sum_exp() const { return log_sum_exp_; }
  std::int64_t first_token(std::size_t sequence) const;

  /// Empty when every row is within its bound, else the first that is not. `worst` is the largest ratio to it.
  std::string compare(double* worst = nullptr) const;
  struct Exact {
    std::vector<double> out;       // [Dv]
    std::vector<double> weighted;  // [Dv]: Σ p|v|
    double log_sum_exp;
    double magnitude;
    std::int64_t keys;
    bool empty;
  };
  /// Exact results of a token of a sequence and head.
  Exact exact(std::size_t sequence, std::int64_t token, std::int64_t head) const;

  /// Memory of a cache row, to spoil or to look at; [Hkv] apart by the case's strides.
  void write_key(std::size_t sequence, std::int64_t position, std::int64_t kv_head, float value);
  void write_value(std::size_t sequence, std::int64_t position, std::int64_t kv_head, float value);

  float key_at(std::size_t sequence, std::int64_t position, std::int64_t kv_head, std::int64_t d) const;
  float value_at(std::size_t sequence, std::int64_t position, std::int64_t kv_head, std::int64_t d) const;
  float query_at(std::size_t sequence, std::int64_t position, std::int64_t head, std::int64_t d) const;
  float mask_at(std::size_t sequence, std::int64_t position, std::int64_t key) const;  // −inf hides

 private:
  void make_data();
  void place();
  void fill_cache();
  void fill_query();
  void fill_biases();
  std::int64_t oldest(const CachedSequence& sequence) const;
  double bias(std::size_t sequence, std::int64_t position, std::int64_t head, std::int64_t key) const;
  std::int64_t row_offset(const TensorView& view, std::size_t sequence, std::int64_t position, std::int64_t head) const;
  void write_row(const TensorView& view, std::size_t sequence, std::int64_t position, std::int64_t head, float value);

  CachedShape shape_;
  std::int64_t tokens_ = 0, rows_ = 0;
  std::vector<std::vector<float>> keys_, values_;  // of each sequence [length, Hkv, D|Dv]
  std::vector<std::int32_t> starts_, lengths_, slots_, table_, mask_starts_;
  std::int64_t table_width_ = 0;
  AlignedBuffer key_memory_, value_memory_, query_memory_, out_memory_;
  KvCache cache_;
  TensorView query_, out_;
  std::vector<float> sinks_, slopes_, relative_, float_mask_, log_sum_exp_;
  std::vector<std::uint8_t> byte_mask_;
  std::int64_t mask_width_ = 0;
};

/// Element `at` of a view, in elements from its first.
float cached_element(const ConstTensorView& view, std::int64_t at);
/// Half the distance between the numbers of this type around x.
double half_step(DataType type, double x);

}  // namespace headway::testing
