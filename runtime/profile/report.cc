// The totals as text: a table for people and JSON for programs.
#include <algorithm>
#include <charconv>

#include "headway/profiler.h"
#include "runtime/base/json_text.h"
#include "runtime/profile/profiler_worker.h"

namespace headway {
namespace {

std::string fixed(double value, int decimals) {
  // 1e300 has 301 digits in fixed notation; no total comes near, and a number that does not fit is shown as "-".
  char text[64];
  const auto result = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, decimals);
  return result.ec == std::errc{} ? std::string(text, result.ptr) : "-";
}

/// Columns that are as wide as their widest cell: the first left-aligned, the others right-aligned.
class TextTable {
 public:
  void add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
    lines_.push_back(std::move(cells));
  }

  std::string text() const {
    std::string text;
    for (const auto& cells : lines_) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string fill(widths_[i] - cells[i].size(), ' ');
        if (i > 0) text += "  ";
        text += i == 0 ? cells[i] + fill : fill + cells[i];
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> lines_;
};

void append_member(const char* key, std::int64_t value, std::string* json) {
  *json += ",\"";
  *json += key;
  *json += "\":";
  append_json_number(value, json);
}

}  // namespace

std::string Profiler::table(double peak_flops) const {
  const std::vector<Row> all = rows();
  // A node's zone contains the zones that its operator reports, so each kind is a share of its own whole.
  constexpr const char* kNode = "node";
  double total[2] = {0, 0};
  for (const Row& row : all) total[row.category == kNode] += row.seconds;

  TextTable table;
  std::vector<std::string> head = {"zone", "calls", "ms", "share", "GF", "GF/s"};
  if (peak_flops > 0) head.push_back("% of peak");
  head.insert(head.end(), {"exps", "MB"});
  table.add(head);
  for (const Row& row : all) {
    const double whole = total[row.category == kNode];
    const auto flops = static_cast<double>(row.work.flops_executed);
    // Workers run side by side, so the rate is over the time of the busiest: idle workers count against it.
    const double rate = row.seconds_max > 0 ? flops / row.seconds_max : 0;
    std::vector<std::string> line = {
        row.category + '/' + row.name, std::to_string(row.count),
        fixed(row.seconds * 1e3, 3),   fixed(whole > 0 ? 100 * row.seconds / whole : 0, 1) + '%',
        fixed(flops * 1e-9, 3),        fixed(rate * 1e-9, 1)};
    if (peak_flops > 0) line.push_back(fixed(100 * rate / peak_flops, 1));
    line.insert(line.end(), {std::to_string(row.work.exps), fixed(static_cast<double>(row.work.bytes) * 1e-6, 2)});
    table.add(line);
  }
  return table.text();
}

std::string Profiler::json() const {
  std::string json = "{\"zones\":[";
  bool first = true;
  for (const Row& row : rows()) {
    json += first ? "\n{\"name\":" : ",\n{\"name\":";
    first = false;
    append_json_string(row.name, &json);
    json += ",\"category\":";
    append_json_string(row.category, &json);
    append_member("count", row.count, &json);
    json += ",\"seconds\":";
    append_json_number(row.seconds, &json);
    json += ",\"seconds_max\":";
    append_json_number(row.seconds_max, &json);
    append_member("flops_nominal", row.work.flops_nominal, &json);
    append_member("flops_executed", row.work.flops_executed, &json);
    append_member("exps", row.work.exps, &json);
    append_member("bytes", row.work.bytes, &json);
    json += '}';
  }
  std::int64_t dropped = workers_[0]->strays.load();
  for (const auto& worker : workers_) dropped += worker->owned.dropped + worker->shared.dropped;
  json += "\n]";
  append_member("dropped", dropped, &json);
  return json + "}\n";
}

}  // namespace headway
