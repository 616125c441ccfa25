// What the few_queries engine's files share. Its words are those of tiled/task.h, and one more:
//
//   key split   a range of the keys. A task is one key split of one head group; the splits of a head group are added up
//               in their order.
//
// A head group here is all G query heads of a key/value head, and its G·Sq rows are computed together.
#pragma once

#include <cstdint>

#include "ops/attention/bias.h"
#include "ops/simd/few_queries.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Keys of each stream in a key block, and of all four.
inline constexpr std::int64_t kBlockSteps = 64;
inline constexpr std::int64_t kBlockKeys = kBlockSteps * kKeyStreams;

struct FewQueriesShape {
  explicit FewQueriesShape(const AttentionSpec& spec)
      : sharing(*spec.num_kv_heads > 0 ? spec.num_heads / *spec.num_kv_heads : 0), rows(sharing * spec.query_len) {}

  std::int64_t sharing;  // G
  std::int64_t rows;     // G·Sq
};

/// Running softmax and context of the rows over one key split.
struct SplitState {
  float* maximum = nullptr;  // [rows]
  float* sum = nullptr;      // [rows]
  float* live = nullptr;     // [rows]: 1 once a key was not hidden by the masks, else 0
  float* context = nullptr;  // [rows, Dv]
};

/// Scratch of one worker.
struct FewQueriesScratch {
  float* queries;  // [rows, D]
  float* scores;   // [rows, kBlockKeys]
  float* bias;     // [kBlockKeys]
  float* rescale;  // [rows]
  float* key;      // [kBlockKeys, D] of the spec's type, where the innermost stride is not 1
  float* value;    // [kBlockKeys, Dv]
};

/// One head group of a run.
struct FewQueriesTask {
  const AttentionSpec& spec;
  const FewQueriesShape& shape;
  const FewQueriesKernels& kernels;
  const SoftmaxKernels& row_kernels;
  const AttentionArgs& args;
  const BiasSource& bias;
  std::int64_t batch;
  std::int64_t kv_head;

  std::int64_t head_of(std::int64_t row) const { return kv_head * shape.sharing + row / spec.query_len; }
  std::int64_t query_of(std::int64_t row) const { return row % spec.query_len; }
};

}  // namespace headway
