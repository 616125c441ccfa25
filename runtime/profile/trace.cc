// The recorded events in the Chrome trace event format: complete events ("X"), one track a worker.
// Source: "Trace Event Format", Google, 2016.
#include <algorithm>

#include "headway/profiler.h"
#include "runtime/base/json_text.h"
#include "runtime/profile/profiler_worker.h"

namespace headway {
namespace {

void append_thread_name(int worker, std::string* json) {
  *json += R"({"name":"thread_name","ph":"M","pid":1,"tid":)";
  append_json_number(std::int64_t{worker}, json);
  *json += R"(,"args":{"name":"worker )";
  append_json_number(std::int64_t{worker}, json);
  *json += R"("}})";
}

void append_args(const Work& work, std::string* json) {
  *json += R"(,"args":{"flops_executed":)";
  append_json_number(work.flops_executed, json);
  *json += R"(,"exps":)";
  append_json_number(work.exps, json);
  *json += R"(,"bytes":)";
  append_json_number(work.bytes, json);
  *json += "}}";
}

void append_event(const Recording::Event& event, const Recording::Entry& entry, int worker, std::uint64_t start_ticks,
                  std::string* json) {
  const double us_per_tick = nanoseconds_per_tick() * 1e-3;
  // A scope that was open when the profiler was made or cleared began before time zero; it is shown from there.
  const std::uint64_t begin = std::max(event.begin_ticks, start_ticks) - start_ticks;
  *json += "{\"name\":";
  append_json_string(entry.name, json);
  *json += ",\"cat\":";
  append_json_string(entry.category, json);
  *json += R"(,"ph":"X","pid":1,"tid":)";
  append_json_number(std::int64_t{worker}, json);
  *json += ",\"ts\":";
  append_json_number(static_cast<double>(begin) * us_per_tick, json);
  *json += ",\"dur\":";
  append_json_number(static_cast<double>(event.busy_ticks) * us_per_tick, json);
  append_args(event.work, json);
}

}  // namespace

std::string Profiler::chrome_trace() const {
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (int w = 0; w < workers(); ++w) {
    if (w > 0) json += ",\n";
    append_thread_name(w, &json);
  }
  for (int w = 0; w < workers(); ++w) {
    for (const Recording* recording : {&workers_[w]->owned, &workers_[w]->shared}) {
      for (const Recording::Event& event : recording->trace) {
        json += ",\n";
        append_event(event, recording->entries[event.entry], w, start_ticks_, &json);
      }
    }
  }
  return json + "\n]}\n";
}

}  // namespace headway
