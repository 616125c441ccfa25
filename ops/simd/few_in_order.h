// The steps of attention for few query rows with the bits of the register tiles (attention_tile.h): every product, exp
// and sum runs over the same numbers in the same order, only the lanes hold something else: keys where scores are made,
// value columns where contexts are. Keys and values are read once for all rows. Knows no masks and no tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/tensor.h"
#include "ops/simd/few_queries.h"

namespace headway {

/// scores[r][key] = queries[r] · key, for a panel of keys as LoadPanel makes it of their rows.
struct OrderedScores {
  const float* panel;  // [depth, vectors · lanes]: keys on lanes, 64-byte aligned
  int vectors;
  std::int64_t depth;
  std::int64_t depth_block;  // products of so many columns are summed before they are added to those before
  const float* queries;      // [rows, depth], scaled
  std::int64_t rows;
  float* scores;  // [rows, row_stride]: vectors · lanes of them are written
  std::int64_t row_stride;
  const std::byte* const* next = nullptr;  // [next_rows] rows of next_bytes to prefetch: those of the next panel
  std::int64_t next_rows = 0;
  std::int64_t next_bytes = 0;
};

/// context[r] = rescale[r] · context[r] + Σ probs[r][key] · value of key, key by key.
template <class Real>
struct OrderedContext {
  const std::byte* const* values;  // [keys + kPrefetchSteps], the last for prefetches alone; innermost stride 1
  std::int64_t keys;
  const float* probs;  // [rows, row_stride]
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t columns;
  const float* rescale;  // [rows]
  float* context;        // [rows, columns]
};

/// Kernels of one target, resolved once at plan time.
struct FewInOrderKernels {
  void (*score)(const OrderedScores&);
  /// As FewQueriesKernels::softmax, but its sum runs over the keys one by one.
  void (*softmax)(const FewSoftmax&);
  void (*context)(const OrderedContext<float>&);
  void (*context_bf16)(const OrderedContext<BFloat16>&);
  void (*context_f16)(const OrderedContext<Float16>&);
};

/// Of the current target (target.h).
FewInOrderKernels few_in_order_kernels();

}  // namespace headway
