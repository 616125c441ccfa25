// See model_profile.h.
#include "tools/model/model_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace headway::tools {
namespace {

struct OperatorTime {
  std::string op;
  std::int64_t nodes = 0;
  double seconds = 0;
};

bool is_attention(const std::string& op) { return op.find("Attention") != std::string::npos; }

std::vector<OperatorTime> by_operator(const Graph& graph, const std::vector<Profiler::Row>& rows) {
  std::map<std::string, std::string> operators = operators_by_row(graph);
  std::map<std::string, OperatorTime> times;
  for (const Profiler::Row& row : rows) {
    if (row.category != "node") continue;
    OperatorTime& time = times[operators[row.name]];
    time.nodes++;
    time.seconds += row.seconds;
  }
  std::vector<OperatorTime> sorted;
  for (auto& [op, time] : times) sorted.push_back({op, time.nodes, time.seconds});
  std::sort(sorted.begin(), sorted.end(),
            [](const OperatorTime& a, const OperatorTime& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace

std::map<std::string, std::string> operators_by_row(const Graph& graph) {
  std::map<std::string, std::string> operators;
  for (const Node& node : graph.nodes()) operators.emplace(node.name.empty() ? node.op : node.name, node.op);
  return operators;
}

std::string model_profile_text(const Graph& graph, const Profiler& profiler, int runs) {
  const std::vector<Profiler::Row> rows = profiler.rows();
  const std::vector<OperatorTime> operators = by_operator(graph, rows);
  double all = 0;
  double attention = 0;
  for (const OperatorTime& time : operators) {
    all += time.seconds;
    if (is_attention(time.op)) attention += time.seconds;
  }
  const double per_run = 1e3 / runs;
  std::string out = fmt::format("{:<34} {:>6} {:>11} {:>7}\n", "operator", "nodes", "ms per run", "share");
  for (const OperatorTime& time : operators) {
    out += fmt::format("{:<34} {:>6} {:>11.4f} {:>6.1f}%\n", time.op, time.nodes, time.seconds * per_run,
                       all > 0 ? 100 * time.seconds / all : 0);
  }
  out += fmt::format("attention: {:.4f} of {:.4f} ms per run, {:.1f}%\n\n", attention * per_run, all * per_run,
                     all > 0 ? 100 * attention / all : 0);
  out += fmt::format("{:<22} {:>8} {:>11} {:>9} {:>11}\n", "work inside", "count", "ms per run", "GFLOP", "exps");
  for (const Profiler::Row& row : rows) {
    if (row.category == "node") continue;
    out += fmt::format("{:<22} {:>8} {:>11.4f} {:>9.4f} {:>11}\n", row.category + " " + row.name, row.count / runs,
                       row.seconds * per_run, static_cast<double>(row.work.flops_executed) * 1e-9 / runs,
                       row.work.exps / runs);
  }
  return out;
}

}  // namespace headway::tools
