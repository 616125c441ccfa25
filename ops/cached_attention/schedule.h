// The tasks of one call: which rows of which sequence against which keys. Decided by shapes and lengths, so that the
// bits do not depend on the threads. Knows no kernels.
#pragma once

#include <cstdint>

#include "ops/cached_attention/geometry.h"
#include "ops/cached_attention/sequences.h"

namespace headway {

/// What the schedule says of a sequence. Entry B holds the totals.
struct SequencePlan {
  std::int64_t first_task;
  std::int64_t first_state;  // of its rows, where its keys are split
  std::int64_t first_row;    // of all rows of split sequences
  std::int64_t groups;       // tasks per key/value head and split
  std::int64_t first_split;  // in multiples of split_keys
  std::int64_t splits;       // 0: no token sees a key
  bool few;
};

struct CachedTask {
  std::int64_t sequence;
  std::int64_t kv_head;
  std::int64_t group;
  std::int64_t split;  // from the sequence's first on
};

class Schedule {
 public:
  /// `plans` has room for B + 1 entries and outlives this.
  Schedule(const CachedAttentionSpec& spec, const CachedGeometry& geometry, const Sequences& sequences,
           SequencePlan* plans);

  std::int64_t tasks() const { return plans_[count_].first_task; }
  /// Rows of all sequences whose keys are split.
  std::int64_t split_rows() const { return plans_[count_].first_row; }
  std::int64_t split_keys() const { return split_keys_; }
  std::int64_t tiles_per_task() const { return tiles_per_task_; }
  const SequencePlan& plan(std::int64_t sequence) const { return plans_[sequence]; }
  CachedTask task(std::int64_t index) const;
  /// The sequence of a row counted over all split sequences.
  std::int64_t sequence_of_split_row(std::int64_t row) const;
  CachedAttentionPlan summary() const;

 private:
  void fill(const Sequences& sequences);
  std::int64_t least_split(const Sequences& sequences) const;
  std::int64_t count_tasks(const Sequences& sequences) const;

  const CachedAttentionSpec& spec_;
  const CachedGeometry& geometry_;
  SequencePlan* plans_;
  std::int64_t count_;
  std::int64_t split_keys_;
  std::int64_t tiles_per_task_ = 1;
};

}  // namespace headway
