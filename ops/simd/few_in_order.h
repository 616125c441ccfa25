// The steps of attention for few query rows with the bits of the register tiles (attention_tile.h): every product, exp
// and sum runs over the same numbers in the same order, only the lanes hold something else: keys where scores are made,
// value columns where contexts are. Keys and values are read once for all rows. Knows no masks and no tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"
#include "ops/simd/few_queries.h"

namespace headway {

/// Rows that a kernel may ask for beyond its own in order to prefetch them.
inline constexpr std::int64_t kOrderedAhead = 32;

/// scores[r][key] = queries[r] · key.
template <class Real>
struct OrderedScores {
  const std::byte* const* keys;  // [count + ahead], the last for prefetches alone; innermost stride 1
  std::int64_t count;            // at least 1
  std::int64_t ahead;
  std::int64_t depth;
  std::int64_t depth_block;  // products of so many columns are summed before they are added to those before
  const float* queries;      // [rows, depth], scaled
  std::int64_t rows;
  float* scores;  // [rows, row_stride]; written as far as the next multiple of two vectors
  std::int64_t row_stride;
};

/// As FewSoftmax for several rows, the sum of each running over its keys one by one.
struct OrderedSoftmax {
  float* scores;  // [rows, row_stride]
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t n;
  float* maximum;  // [rows]
  float* sum;      // [rows]
  float* rescale;  // [rows]
};

/// context[r] = rescale[r] · context[r] + Σ probs[r][key] · value of key, key by key.
template <class Real>
struct OrderedContext {
  const std::byte* const* values;  // [keys + ahead], the last for prefetches alone; innermost stride 1
  std::int64_t keys;               // at least 1
  std::int64_t ahead;
  const float* probs;  // [rows, row_stride]
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t columns;
  const float* rescale;  // [rows]
  float* context;        // [rows, columns]
};

/// Kernels of one target, resolved once at plan time; those of keys and values of one float type.
template <class Real>
struct FewInOrderOf {
  void (*score)(const OrderedScores<Real>&);
  void (*context)(const OrderedContext<Real>&);
};
struct FewInOrderKernels {
  void (*softmax)(const OrderedSoftmax&);
  FewInOrderOf<float> f32;
  FewInOrderOf<BFloat16> bf16;
  FewInOrderOf<Float16> f16;
};

/// Of the current target (target.h).
FewInOrderKernels few_in_order_kernels();

}  // namespace headway
