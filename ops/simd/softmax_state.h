// States of a softmax that was computed over part of the keys: maximum, sum of exps and context (the sum of values
// weighted by the exps). Two states of the same rows become that of all their keys. One row at a time or a panel of
// rows on lanes, with the same bits either way. Knows no keys.
#pragma once

#include <cstdint>

namespace headway {

/// left = left + right. With m the larger maximum: sum and context are those of each, times exp(maximum − m). A state
/// without keys (maximum the lowest float, live and sum 0, the context anything) changes no bit of the other.
struct FoldStates {
  std::int64_t rows;     // lanes of a panel: a multiple of the target's; 1 for fold_row
  std::int64_t columns;  // of the context
  float* maximum;        // [rows]
  float* sum;            // [rows]
  float* live;           // [rows]: 1 once a key was not hidden by the masks, else 0
  float* context;        // [columns, rows], 64-byte aligned in a panel
  const float* right_maximum;
  const float* right_sum;
  const float* right_live;
  const float* right_context;
};

/// Kernels of one target, resolved once at plan time.
struct SoftmaxStateKernels {
  void (*fold_row)(const FoldStates&);
  void (*fold_panel)(const FoldStates&);
};

/// Of the current target (target.h).
SoftmaxStateKernels softmax_state_kernels();

}  // namespace headway
