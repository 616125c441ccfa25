// One report per phase, in the order in which a key block passes through them.
#include "ops/attention/phase_clock.h"

#include "ops/attention/zones.h"

namespace headway {

void PhaseClock::report(Profiler* profiler, int worker) const {
  if (!on_) return;
  const Zone* const zones[kPhases] = {&kZonePack, &kZoneScores, &kZoneSoftmax, &kZoneContext};
  std::uint64_t begin = begin_;
  for (int p = 0; p < kPhases; ++p) {
    profiler->add_spread(worker, *zones[p], begin, last_, ticks_[p], work_[p], count_[p]);
    begin += ticks_[p];
  }
}

}  // namespace headway
