// The query rows of one key/value head against a part of its keys: blocks of four streams, masks, running softmax.
// Knows neither tasks nor how parts are added up.
#pragma once

#include <cstdint>

#include "ops/attention/bias.h"
#include "ops/attention/visibility.h"
#include "ops/simd/few_queries.h"
#include "ops/simd/softmax.h"

namespace headway {

/// Sizes of a plan: rows are the G·Sq queries that share a key/value head.
struct FewQueriesShape {
  explicit FewQueriesShape(const AttentionSpec& spec);

  std::int64_t sharing;         // G
  std::int64_t rows;            // G·Sq
  std::int64_t state_floats;    // of a PartState
  std::int64_t scratch_floats;  // of a worker
};

/// Running softmax and context of the rows over one part of the keys.
struct PartState {
  PartState() = default;
  PartState(const FewQueriesShape& shape, float* at);

  float* maximum = nullptr;  // [rows]
  float* sum = nullptr;      // [rows]
  float* live = nullptr;     // [rows]: 1 once a key was not hidden by the masks, else 0
  float* context = nullptr;  // [rows, Dv]
};

/// What was read and seen, for the profile.
struct PartCount {
  std::int64_t keys = 0;   // read
  std::int64_t pairs = 0;  // seen by the integer rules
};

struct FewQueriesPart {
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

  /// Fills `state` from the keys of `part`; `scratch` has shape.scratch_floats.
  PartCount run(const KeyRange& part, const PartState& state, float* scratch) const;
};

}  // namespace headway
