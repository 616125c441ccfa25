// Tensors in every memory layout an engine may hand over, with poison in the gaps. Knows nothing of attention.
#pragma once

#include <string>
#include <vector>

#include "headway/tensor.h"
#include "ops/base/numeric.h"
#include "tests/support/random_data.h"

namespace headway::testing {

/// Where the elements of a [B, H, S, D] view lie.
enum class Layout {
  kBhsd,        ///< contiguous
  kBshd,        ///< heads inside a token: what a projection writes
  kPackedQkv,   ///< a token holds query, key and value side by side
  kTransposed,  ///< [B, H, D, S]: innermost stride is S
  kEveryOther,  ///< innermost stride 2
  kMisaligned,  ///< starts one element late, rows padded by three
  kOddStart,    ///< starts one element late, rows padded by two: pairs of elements lie across their alignment
  kReversed,    ///< the sequence runs backwards in memory
};
inline constexpr Layout kAllLayouts[] = {Layout::kBhsd,       Layout::kBshd,       Layout::kPackedQkv,
                                         Layout::kTransposed, Layout::kEveryOther, Layout::kMisaligned,
                                         Layout::kOddStart,   Layout::kReversed};
const char* name(Layout layout);

/// One element of an f32 or bf16 tensor, read and written as f32.
class Element {
 public:
  Element(std::byte* at, DataType type) : at_(at), type_(type) {}
  Element(const Element&) = default;
  operator float() const {
    return is_half() ? widen(*reinterpret_cast<const BFloat16*>(at_)) : *reinterpret_cast<const float*>(at_);
  }
  Element& operator=(float x) {
    if (is_half()) {
      *reinterpret_cast<BFloat16*>(at_) = to_bfloat16(x);
    } else {
      *reinterpret_cast<float*>(at_) = x;
    }
    return *this;
  }
  Element& operator=(const Element& other) { return *this = static_cast<float>(other); }
  Element& operator+=(float x) { return *this = *this + x; }

 private:
  bool is_half() const { return type_ == DataType::kBF16; }
  std::byte* at_;
  DataType type_;
};

/// Element `at` of an f32 or bf16 view, in elements from its first.
inline float read_element(const ConstTensorView& view, std::int64_t at) {
  return view.type == DataType::kBF16 ? widen(view.as<BFloat16>()[at]) : view.as<float>()[at];
}

/// An f32 or bf16 tensor in some layout that owns its memory. All of it starts as NaN with a pattern of its own, so
/// that a read of a gap poisons the result and a write to one can be found.
class Strided {
 public:
  Strided() = default;
  /// `dims` of rank 4; other ranks are contiguous whatever the layout says.
  Strided(const Dims& dims, Layout layout, DataType type = DataType::kF32);

  TensorView view() { return view_; }
  ConstTensorView view() const { return view_; }
  Element at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d);
  /// Standard normal values, distinct everywhere.
  void fill_normal(Random& random);
  void fill(float value);
  /// Puts the poison back everywhere.
  void poison();
  /// True when a gap no longer holds the poison.
  bool gaps_written() const;

 private:
  TensorView view_;
  std::size_t size_ = 0;               // elements, the gaps included
  std::vector<std::uint32_t> memory_;  // of one or two elements a word
};

/// Calls use(b, h, i, j) for every index of rank-4 dims.
template <class Use>
void each(const Dims& dims, Use use) {
  for (std::int64_t b = 0; b < dims[0]; ++b) {
    for (std::int64_t h = 0; h < dims[1]; ++h) {
      for (std::int64_t i = 0; i < dims[2]; ++i) {
        for (std::int64_t j = 0; j < dims[3]; ++j) use(b, h, i, j);
      }
    }
  }
}

/// Element offset of an index.
inline std::int64_t offset_of(const Dims& strides, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  return b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
}

}  // namespace headway::testing
