// See profile_page.h.
#include "tools/view/profile_page.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "headway/version.h"
#include "tools/command/process.h"
#include "tools/measure/machine.h"
#include "tools/measure/peak/peak.h"
#include "tools/view/node_layer.h"
#include "tools/view/page.h"

namespace headway::tools {
namespace {

using nlohmann::json;

constexpr std::size_t kFarBytes = std::size_t{256} << 20;  // beyond every cache
constexpr double kRoofSeconds = 0.04;
constexpr int kRoofTries = 4;

/// A roof is what the machine can do: the best of some tries, so that another program's moment does not lower it.
template <class Measure>
double best_of(Measure measure) {
  double best = 0;
  for (int i = 0; i < kRoofTries; ++i) best = std::max(best, measure());
  return best;
}

/// Events as [zone, worker, begin µs, length µs], zones by name and category.
struct Trace {
  json zones = json::array(), events = json::array();
};

Trace trace_of(const std::string& chrome_trace) {
  Trace trace;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  double first = -1;
  const json root = json::parse(chrome_trace);
  for (const json& event : root["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::pair key(event["name"].get<std::string>(), event["cat"].get<std::string>());
    const auto [at, added] = known.emplace(key, known.size());
    if (added) trace.zones.push_back({{"name", key.first}, {"category", key.second}});
    if (first < 0 || event["ts"] < first) first = event["ts"].get<double>();
    trace.events.push_back({at->second, event["tid"], event["ts"], event["dur"]});
  }
  for (json& event : trace.events) event[2] = event[2].get<double>() - first;
  return trace;
}

/// Zones of one name and category, which several places of the code may have, as one row; nodes as they are.
std::vector<Profiler::Row> merged(const std::vector<Profiler::Row>& rows) {
  std::vector<Profiler::Row> out;
  for (const Profiler::Row& row : rows) {
    if (row.count == 0) continue;
    const auto twin = std::find_if(out.begin(), out.end(), [&](const Profiler::Row& other) {
      return row.category != "node" && other.category == row.category && other.name == row.name;
    });
    if (twin == out.end()) {
      out.push_back(row);
      continue;
    }
    twin->count += row.count;
    twin->seconds += row.seconds;
    twin->work += row.work;
  }
  return out;
}

}  // namespace

std::string profile_page(const ProfilePageParts& parts, const Threads& threads) {
  const auto per_run = [&](auto total) { return static_cast<double>(total) / parts.runs; };
  json rows = json::array();
  for (const Profiler::Row& row : merged(parts.rows)) {
    json one = {{"name", row.name},
                {"category", row.category},
                {"count", per_run(row.count)},
                {"seconds", per_run(row.seconds)},
                {"flops_nominal", per_run(row.work.flops_nominal)},
                {"flops_executed", per_run(row.work.flops_executed)},
                {"exps", per_run(row.work.exps)},
                {"bytes", per_run(row.work.bytes)}};
    if (const auto op = parts.operators.find(row.name); row.category == "node" && op != parts.operators.end()) {
      one["operator"] = op->second;
      one["layer"] = layer_of(row.name);
    }
    rows.push_back(std::move(one));
  }
  Trace trace = trace_of(parts.trace);
  const std::size_t far_bytes = kFarBytes / static_cast<std::size_t>(parts.workers);
  const json data = {
      {"version", version()},
      {"date", today()},
      {"command", command_line()},
      {"machine", text(describe_machine(threads))},
      {"what", parts.what},
      {"workers", parts.workers},
      {"runs", parts.runs},
      {"wall_seconds", parts.wall_seconds},
      {"peak_flops", best_of([&] { return measure_fma_peak(threads, kRoofSeconds); })},
      {"read_bandwidth", best_of([&] { return measure_read_bandwidth(threads, far_bytes, kRoofSeconds); })},
      {"rows", rows},
      {"zones", trace.zones},
      {"events", trace.events}};
  PageParts page_parts;
  page_parts.file = "profile.html";
  page_parts.title = "Profile: " + parts.what;
  page_parts.json = data.dump(-1, ' ', false, json::error_handler_t::replace);
  return page(page_parts);
}

}  // namespace headway::tools
