// One random layer with data, f32 or bf16: spec, weights, inputs in any batch layout, masks; and how far a result may
// be from the double reference on the same numbers. Knows no implementation.
#pragma once

#include <string>
#include <vector>

#include "headway/multi_head_attention.h"
#include "tests/support/random_data.h"

namespace headway::testing {

/// What to make; the sizes and options of `spec` decide which tensors there are.
struct LayerShape {
  MultiHeadAttentionSpec spec;
  bool biases = true;
  bool bias_kv = false;
  bool sequence_first = false;  ///< query, key, value and out are [S, B, E] in memory
  bool padded_rows = false;     ///< rows of query and out have a gap behind them
  int mask_rank = 2;            ///< when spec.mask: 2 to 4, full
  double hidden = 0.3;          ///< share of mask elements that hide
  std::vector<std::int64_t> lengths, offsets;
  std::uint64_t seed = 1;
};
std::string describe(const LayerShape& shape);

class LayerCase {
 public:
  explicit LayerCase(const LayerShape& shape);
  LayerCase(const LayerCase&) = delete;
  LayerCase& operator=(const LayerCase&) = delete;

  const MultiHeadAttentionSpec& spec() const { return shape_.spec; }
  /// The core's, with its sizes: what an implementation may refuse.
  AttentionSpec core_spec() const;
  /// Of the spec's type.
  const MultiHeadAttentionWeights& weights() const { return given_weights_; }
  /// Arguments with fresh, poisoned outputs.
  MultiHeadAttentionArgs args();
  /// The largest ratio of an error of `out` and `scores` to its bound; infinite where one is NaN and the other is not.
  double worst_ratio(const MultiHeadAttentionArgs& computed) const;
  /// The values of `computed.out` in row-major order, for comparing bits.
  static std::vector<float> values(const TensorView& out);

 private:
  float* floats(std::size_t count);
  /// A number that the spec's type has.
  float number(float scale);
  ConstTensorView normal(const Dims& dims, float scale);
  /// [B, S, W] as the shape wants it laid out, poisoned.
  TensorView rows(std::int64_t length, std::int64_t width, bool padded, DataType type);
  /// The same view over bf16 when that is the spec's type; the numbers are the same.
  ConstTensorView given(const ConstTensorView& view);
  ConstTensorView random_mask(MaskKind kind, const Dims& dims);
  void compute_reference();
  double output_bound(std::int64_t e) const;

  LayerShape shape_;
  Random random_;
  std::vector<std::vector<float>> float_memory_;
  std::vector<std::vector<BFloat16>> half_memory_;
  std::vector<std::vector<std::uint8_t>> byte_memory_;
  MultiHeadAttentionWeights weights_, given_weights_;  // f32; as the layer gets them
  MultiHeadAttentionArgs inputs_, given_inputs_;
  Dims score_dims_;
  std::vector<double> out_, scores_;
  double value_magnitude_ = 0;  // largest Σ|x·w| of a projected value
  double largest_value_ = 0;    // of the projected ones
};

}  // namespace headway::testing
