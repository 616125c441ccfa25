// Seeing what attention is asked to compute, wherever it is called from: in a layer, in a node of a graph. For tools
// that look into heads; nothing else changes.
#pragma once

#include "headway/attention.h"

namespace headway {

/// While it lives, sees every attention that is run on the thread that made it, by Attention, MultiHeadAttention or a
/// node of a session (headway/running_node.h says which); not CachedAttention, nor nodes computed in f64 or rounded
/// after every operation. Observers nest: the youngest sees all, the others nothing. Costs a run one look at a
/// thread's variable.
class HEADWAY_API AttentionObserver {
 public:
  AttentionObserver();
  virtual ~AttentionObserver();
  AttentionObserver(const AttentionObserver&) = delete;
  AttentionObserver& operator=(const AttentionObserver&) = delete;

  /// Called before the run, which has checked `args`: views hold until it returns, outputs are not written yet. `spec`
  /// is complete. What it throws leaves the run.
  virtual void before_run(const AttentionSpec& spec, const AttentionArgs& args) = 0;

 private:
  AttentionObserver* before_;
};

}  // namespace headway
