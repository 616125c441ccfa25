// Time and work of the phases of one task: summed on the stack, reported to the profiler once. Knows no engine.
#pragma once

#include <cstdint>

#include "headway/profiler.h"

namespace headway {

/// Off when `on` is false: lap() is then one branch.
class PhaseClock {
 public:
  enum Phase { kPack, kScores, kSoftmax, kContext, kPhases };
  explicit PhaseClock(bool on) : on_(on), begin_(on ? ticks_now() : 0), last_(begin_) {}
  /// Everything since the last call was `phase`.
  void lap(Phase phase, const Work& work) {
    if (!on_) return;
    const std::uint64_t now = ticks_now();
    ticks_[phase] += now - last_;
    last_ = now;
    work_[phase] += work;
    ++count_[phase];
  }
  bool on() const { return on_; }
  void report(Profiler* profiler, int worker) const;

 private:
  bool on_;
  std::uint64_t begin_;
  std::uint64_t last_;
  std::uint64_t ticks_[kPhases] = {};
  Work work_[kPhases];
  std::int64_t count_[kPhases] = {};
};

}  // namespace headway
