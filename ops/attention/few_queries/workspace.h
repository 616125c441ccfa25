// The workspace of the few_queries engine: a state per key split of each head group, and scratch per worker. Knows
// sizes, no tensors.
#pragma once

#include "ops/attention/few_queries/task.h"
#include "ops/base/workspace_layout.h"

namespace headway {

class FewQueriesWorkspace {
 public:
  /// `states`: key splits of all head groups.
  FewQueriesWorkspace(const AttentionSpec& spec, const FewQueriesShape& shape, std::int64_t states);

  std::size_t bytes(int workers) const { return layout_.bytes(workers); }
  SplitState state(std::byte* workspace, std::int64_t index) const;
  FewQueriesScratch scratch(std::byte* workspace, int worker) const;

 private:
  WorkspaceLayout state_layout_;  // of one state
  WorkspaceLayout layout_;
  WorkspaceArray<float> maximum_, sum_, live_, context_;
  WorkspaceArray<std::byte> states_;
  WorkspaceArray<float> queries_, scores_, bias_, rescale_, key_, value_;
};

}  // namespace headway
