// See sweep_compare.h.
#include "tools/measure/sweep_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/base/check.h"

namespace headway::tools {
namespace {

constexpr int kResamples = 4000;
constexpr double kOutside = 0.005;  // of the resamples, on each side

/// Times at equal peak, in flops that the machine could have done.
std::vector<double> at_equal_peak(const SweepRow& row) {
  std::vector<double> values;
  for (const SweepRound& round : row.rounds) values.push_back(round.seconds * round.peak_flops);
  return values;
}

double median_of_resample(const std::vector<double>& values, std::mt19937* random, std::vector<double>* scratch) {
  scratch->clear();
  for (std::size_t i = 0; i < values.size(); ++i) scratch->push_back(values[(*random)() % values.size()]);
  return median(*scratch);
}

HeadComparison compare_rows(const SweepRow& before, const SweepRow& after) {
  const std::vector<double> was = at_equal_peak(before), is = at_equal_peak(after);
  std::mt19937 random(20240917);
  std::vector<double> ratios, scratch;
  for (int i = 0; i < kResamples; ++i) {
    const double numerator = median_of_resample(is, &random, &scratch);
    ratios.push_back(numerator / median_of_resample(was, &random, &scratch));
  }
  std::sort(ratios.begin(), ratios.end());
  const auto outside = static_cast<std::size_t>(kOutside * kResamples);
  return {.heads = after.heads,
          .old_seconds = before.seconds_median,
          .new_seconds = after.seconds_median,
          .ratio_of_times = after.seconds_median / before.seconds_median,
          .ratio = median(is) / median(was),
          .low = ratios[outside],
          .high = ratios[ratios.size() - 1 - outside]};
}

const SweepRow* row_with(const Sweep& sweep, std::int64_t heads) {
  const auto found =
      std::find_if(sweep.rows.begin(), sweep.rows.end(), [&](const SweepRow& row) { return row.heads == heads; });
  return found == sweep.rows.end() ? nullptr : &*found;
}

template <class T>
void require_same(const char* name, const T& before, const T& after) {
  require(before == after, name, " is ", before, " in the sweep to compare with and ", after,
          " in this one, expected the same");
}

}  // namespace

bool SweepComparison::any_slower() const {
  return std::any_of(heads.begin(), heads.end(), [&](const HeadComparison& head) { return slower(head); });
}

void require_comparable(const Sweep& before, const LayerSizes& sizes, int threads) {
  require_same("embed_dim", before.sizes.embed_dim, sizes.embed_dim);
  require_same("seq", before.sizes.seq, sizes.seq);
  require_same("batch", before.sizes.batch, sizes.batch);
  require_same("causal", before.sizes.causal, sizes.causal);
  require_same("type", std::string(type_name(before.sizes.type)), std::string(type_name(sizes.type)));
  require_same("threads", before.machine.threads, threads);
  const bool shared = std::any_of(sizes.heads.begin(), sizes.heads.end(),
                                  [&](std::int64_t heads) { return row_with(before, heads) != nullptr; });
  require(shared, "heads are ", fmt::format("{}", fmt::join(before.sizes.heads, ", ")),
          " in the sweep to compare with and ", fmt::format("{}", fmt::join(sizes.heads, ", ")),
          " in this one, expected one that both have");
}

SweepComparison compare_sweeps(const Sweep& before, const Sweep& after, double tolerance) {
  require_comparable(before, after.sizes, after.machine.threads);
  SweepComparison comparison;
  comparison.tolerance = tolerance;
  for (const SweepRow& row : after.rows) {
    if (const SweepRow* const old = row_with(before, row.heads)) {
      comparison.heads.push_back(compare_rows(*old, row));
    } else {
      comparison.only_new.push_back(row.heads);
    }
  }
  for (const SweepRow& row : before.rows) {
    if (row_with(after, row.heads) == nullptr) comparison.only_old.push_back(row.heads);
  }
  return comparison;
}

std::string comparison_table(const SweepComparison& comparison) {
  std::string out = fmt::format("{:>6} {:>11} {:>11} {:>8} {:>14} {:>17}\n", "h", "before ms", "now ms", "ratio",
                                "at equal peak", "99 % of resamples");
  for (const HeadComparison& head : comparison.heads) {
    out += fmt::format("{:>6} {:>11.4f} {:>11.4f} {:>8.3f} {:>14.3f} {:>8.3f} – {:<6.3f} {}\n", head.heads,
                       head.old_seconds * 1e3, head.new_seconds * 1e3, head.ratio_of_times, head.ratio, head.low,
                       head.high,
                       comparison.slower(head)   ? "SLOWER"
                       : comparison.faster(head) ? "faster"
                                                 : "");
  }
  const auto list = [&](const char* where, const std::vector<std::int64_t>& heads) {
    if (!heads.empty()) out += fmt::format("not compared, {}: h = {}\n", where, fmt::join(heads, ", "));
  };
  list("only there before", comparison.only_old);
  list("only there now", comparison.only_new);
  out += fmt::format("{} by more than {:.3g} % at equal peak in 99 % of resamples of the rounds\n",
                     comparison.any_slower() ? "slower" : "not slower", 100 * comparison.tolerance);
  return out;
}

nlohmann::json to_json(const SweepComparison& comparison) {
  nlohmann::json heads = nlohmann::json::array();
  for (const HeadComparison& head : comparison.heads) {
    heads.push_back({{"heads", head.heads},
                     {"old_seconds", head.old_seconds},
                     {"new_seconds", head.new_seconds},
                     {"ratio_of_times", head.ratio_of_times},
                     {"ratio", head.ratio},
                     {"low", head.low},
                     {"high", head.high},
                     {"slower", comparison.slower(head)},
                     {"faster", comparison.faster(head)}});
  }
  return {{"heads", heads},
          {"tolerance", comparison.tolerance},
          {"only_old", comparison.only_old},
          {"only_new", comparison.only_new},
          {"any_slower", comparison.any_slower()}};
}

}  // namespace headway::tools
