// Two sweeps of the same sizes, head count by head count: what changed, and whether the rounds are enough to say so.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/measure/sweep.h"

namespace headway::tools {

/// Time of the new sweep over that of the old. Of the ratio at equal peak every round's time is multiplied by the FMA
/// peak around it, so that a machine whose clock has changed is not taken for a change of the code.
struct HeadComparison {
  std::int64_t heads = 0;
  double old_seconds = 0, new_seconds = 0;  ///< medians
  double ratio_of_times = 0;
  double ratio = 0;          ///< at equal peak
  double low = 0, high = 0;  ///< between which 99 % of its resamples lie
};

struct SweepComparison {
  std::vector<HeadComparison> heads;  ///< that both have
  std::vector<std::int64_t> only_old, only_new;
  double tolerance = 0;

  /// Slower by more than the tolerance in 99 % of all resamples.
  bool slower(const HeadComparison& head) const { return head.low > 1 + tolerance; }
  bool faster(const HeadComparison& head) const { return head.high < 1 - tolerance; }
  bool any_slower() const;
};

/// Throws kInvalidArgument naming the field and both values where a sweep of these sizes and threads could not be
/// compared with this one.
void require_comparable(const Sweep& before, const LayerSizes& sizes, int threads);

/// The interval is that of 4,000 bootstrap resamples of both sweeps' rounds, always the same ones. It knows what varies
/// within a run and not what varies from run to run: the tolerance is for that. Throws as
/// require_comparable().
SweepComparison compare_sweeps(const Sweep& before, const Sweep& after, double tolerance);

std::string comparison_table(const SweepComparison& comparison);
nlohmann::json to_json(const SweepComparison& comparison);

}  // namespace headway::tools
