// See sweep_spot.h.
#include "tools/measure/sweep_spot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace headway::tools {
namespace {

std::vector<const SweepRow*> by_heads(const Sweep& sweep) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : sweep.rows) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [](const SweepRow* a, const SweepRow* b) { return a->heads < b->heads; });
  return rows;
}

/// Part of a row's median that was spent in a phase: phases are of a profiled run, summed over workers.
double phase_seconds(const SweepRow& row, const std::string& name) {
  double all = 0, own = 0;
  for (const SweepPhase& phase : row.phases) {
    all += phase.seconds;
    if (phase.name == name) own += phase.seconds;
  }
  return all > 0 ? row.seconds_median * own / all : 0;
}

}  // namespace

SweetSpot sweet_spot(const Sweep& sweep) {
  const std::vector<const SweepRow*> rows = by_heads(sweep);
  const auto best = std::min_element(rows.begin(), rows.end(), [](const SweepRow* a, const SweepRow* b) {
    return a->seconds_median < b->seconds_median;
  });
  const double most = (1 + kSpotShare) * (*best)->seconds_median;
  auto first = best, last = best;
  while (first != rows.begin() && (*(first - 1))->seconds_median <= most) --first;
  while (last + 1 != rows.end() && (*(last + 1))->seconds_median <= most) ++last;
  SweetSpot spot{(*best)->heads, (*first)->heads, (*last)->heads, {}, 0};
  if (last + 1 == rows.end()) return spot;
  const SweepRow& next = **(last + 1);
  double grown = 0, largest = 0;
  for (const SweepPhase& phase : next.phases) {
    const double more = phase_seconds(next, phase.name) - phase_seconds(**best, phase.name);
    if (more <= 0) continue;
    grown += more;
    if (more > largest) largest = more, spot.limit = phase.name;
  }
  spot.limit_share = grown > 0 ? largest / grown : 0;
  return spot;
}

std::string sweep_sentence(const Sweep& sweep) {
  const std::vector<const SweepRow*> rows = by_heads(sweep);
  const SweepRow &few = *rows.front(), &many = *rows.back();
  const SweetSpot spot = sweet_spot(sweep);
  std::string text = "The mathematics needs the same matrix work at every h. ";
  if (rows.size() > 1) {
    const double more = 100 * (many.seconds_median / few.seconds_median - 1);
    const std::string than = few.heads == 1 ? "one" : std::to_string(few.heads);
    text += std::abs(more) < 0.5 ? fmt::format("{} heads take the time of {}. ", many.heads, than)
                                 : fmt::format("{} heads take {:.0f} % {} time than {}. ", many.heads, std::abs(more),
                                               more > 0 ? "more" : "less", than);
  }
  text += spot.first == spot.last
              ? fmt::format("The fastest is h = {}", spot.fastest)
              : fmt::format("Within {:.0f} % of the fastest are h = {} to {}", 100 * kSpotShare, spot.first, spot.last);
  if (!spot.limit.empty()) {
    text += fmt::format("; of what the next takes more, {:.0f} % is {}", 100 * spot.limit_share, spot.limit);
  }
  return text + ".";
}

nlohmann::json to_json(const SweetSpot& spot) {
  return {{"fastest", spot.fastest},         {"first", spot.first}, {"last", spot.last}, {"limit", spot.limit},
          {"limit_share", spot.limit_share}, {"share", kSpotShare}};
}

}  // namespace headway::tools
