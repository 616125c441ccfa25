// The tasks of one call: few rows or query tiles of a sequence and key/value head against the keys of a split, and the
// adding up of splits. Knows neither how the call was cut nor threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/profiler.h"
#include "ops/cached_attention/call.h"
#include "ops/cached_attention/schedule.h"
#include "ops/cached_attention/states.h"
#include "ops/cached_attention/workspace.h"

namespace headway {

struct CachedTasks {
  const CachedCall& call;
  const CachedWorkspace& workspace;
  const Schedule& schedule;
  std::byte* memory;
  Profiler* profiler;

  /// Task `index` of the schedule: writes the rows of unsplit sequences, states of the others.
  void run(std::int64_t index, int worker) const;
  /// Adds up the states of split rows [begin, end), counted over all split sequences, and writes the rows.
  void fold_rows(std::int64_t begin, std::int64_t end, int worker) const;

 private:
  void few_rows(const HeadKeys& keys, const CachedTask& task, int worker) const;
  void tiles(const HeadKeys& keys, const CachedTask& task, int worker) const;
  void fold_row(std::int64_t index) const;
  Work work(const HeadKeys& keys, std::int64_t begin, std::int64_t end) const;
  /// The state of row 0 of a split.
  SoftmaxState state(const CachedTask& task) const;
};

}  // namespace headway
