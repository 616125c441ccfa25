// A saved sweep read back.
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "tools/measure/sweep.h"

namespace headway::tools {
namespace {

using nlohmann::json;

/// Fields of an object of the file, each with the place that a message names.
class SavedObject {
 public:
  SavedObject(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    require(object_.is_object(), place_, " is no object, expected what `headway sweep --json` wrote");
  }

  const json& field(const char* name) const {
    const auto found = object_.find(name);
    require(found != object_.end(), place_, " has no \"", name, "\", expected what `headway sweep --json` wrote");
    return *found;
  }
  SavedObject object(const char* name) const { return {field(name), place_ + "." + name}; }
  template <class T>
  T get(const char* name) const {
    const json& value = field(name);
    try {
      return value.get<T>();
    } catch (const json::exception&) {
      fail(ErrorCode::kInvalidArgument, place_, ".", name, " is ", value.dump().substr(0, 40),
           ", expected what `headway sweep --json` wrote");
    }
  }

 private:
  const json& object_;
  std::string place_;
};

SweepRow row_of(const SavedObject& saved, const std::string& place) {
  SweepRow row;
  row.heads = saved.get<std::int64_t>("heads");
  row.head_dim = saved.get<std::int64_t>("head_dim");
  row.parameters = saved.get<std::int64_t>("parameters");
  row.flops_nominal = saved.get<std::int64_t>("matmul_flops_nominal");
  row.flops_executed = saved.get<std::int64_t>("matmul_flops_executed");
  row.exps = saved.get<std::int64_t>("exps");
  row.seconds_median = saved.get<double>("seconds_median");
  row.seconds_spread = saved.get<double>("seconds_spread");
  row.peak_share = saved.get<double>("peak_percent") / 100;
  row.worst_error = saved.get<double>("worst_error");
  row.error_bound = saved.get<double>("error_bound");
  row.implementation = saved.get<std::string>("implementation");
  const auto seconds = saved.get<std::vector<double>>("round_seconds");
  const auto peaks = saved.get<std::vector<double>>("round_peak_gflops");
  require(!seconds.empty(), place, ".round_seconds is empty, expected a round or more");
  require(seconds.size() == peaks.size(), place, " has ", seconds.size(), " round_seconds and ", peaks.size(),
          " round_peak_gflops, expected as many");
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    require(seconds[i] > 0 && peaks[i] > 0, place, " has a round of ", seconds[i], " s at ", peaks[i],
            " GFLOP/s, expected both above 0");
    row.rounds.push_back({seconds[i], peaks[i] * 1e9});
  }
  for (const json& phase : saved.get<std::vector<json>>("phases")) {
    const SavedObject one(phase, place + ".phases");
    row.phases.push_back({one.get<std::string>("name"), one.get<double>("seconds")});
  }
  return row;
}

}  // namespace

Sweep read_sweep(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::kIo, path, ": cannot read");
  const json root = json::parse(file, nullptr, false);
  require(!root.is_discarded(), path, " is no JSON, expected what `headway sweep --json` wrote");
  const SavedObject saved(root, path);
  const SavedObject config = saved.object("config"), machine = saved.object("machine");
  Sweep sweep;
  sweep.sizes.embed_dim = config.get<std::int64_t>("embed_dim");
  sweep.sizes.seq = config.get<std::int64_t>("seq");
  sweep.sizes.batch = config.get<std::int64_t>("batch");
  sweep.sizes.causal = config.get<bool>("causal");
  sweep.sizes.type = config.get<std::string>("type") == type_name(DataType::kBF16) ? DataType::kBF16 : DataType::kF32;
  sweep.rounds = config.get<int>("rounds");
  sweep.machine.cpu = machine.get<std::string>("cpu");
  sweep.machine.cores = machine.get<int>("cores");
  sweep.machine.threads = machine.get<int>("threads");
  sweep.machine.simd = machine.get<std::string>("simd");
  sweep.machine.onednn = machine.get<std::string>("onednn");
  sweep.machine.highway = machine.get<std::string>("highway");
  sweep.fma_peak_flops = machine.get<double>("fma_peak_gflops") * 1e9;
  sweep.date = saved.get<std::string>("date");
  sweep.name = path;
  sweep.version = saved.get<std::string>("version");
  std::size_t i = 0;
  for (const json& row : saved.get<std::vector<json>>("rows")) {
    const std::string place = path + ".rows[" + std::to_string(i++) + "]";
    sweep.rows.push_back(row_of(SavedObject(row, place), place));
    sweep.sizes.heads.push_back(sweep.rows.back().heads);
  }
  require(!sweep.rows.empty(), path, " has no rows, expected a head count or more");
  return sweep;
}

}  // namespace headway::tools
