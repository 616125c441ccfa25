// The rows of one head group against one key split: blocks of four streams, masks, running softmax. Knows neither how
// keys are split nor how splits are added up.
#pragma once

#include <cstdint>

#include "ops/attention/few_queries/task.h"
#include "ops/attention/visibility.h"

namespace headway {

/// What was read and seen, for the profile.
struct SplitCount {
  std::int64_t keys = 0;   // read
  std::int64_t pairs = 0;  // (row, key) pairs that the integer rules let through
};

/// Fills `state` from the keys of `split`.
SplitCount run_key_split(const FewQueriesTask& task, const KeyRange& split, const SplitState& state,
                         const FewQueriesScratch& scratch);

}  // namespace headway
