// This library as a contestant of compare.py: one core, layer or model at a time, prepared, run and timed by lines of
// JSON on stdin and stdout. Decides nothing: shapes, inputs, threads and the number of runs come from the driver.
//
//   {"cmd": "prepare", "shape": {..}, "inputs": file, "threads": n}  -> {"variants": [{"name", "ran", "explain"}]}
//   {"cmd": "run", "variant": 0, "times": k}                         -> {"seconds": [..]}, after one untimed run
//   {"cmd": "output", "variant": 0, "path": file}                    -> {}; runs, writes "out"
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "headway/build_info.h"
#include "headway/tensor.h"
#include "perf/peers/prepared.h"
#include "runtime/base/check.h"

namespace headway::perf {
namespace {

using nlohmann::json;

json time_runs(Prepared* prepared, int times) {
  using Clock = std::chrono::steady_clock;
  prepared->run();
  json seconds = json::array();
  for (int i = 0; i < times; ++i) {
    const Clock::time_point begin = Clock::now();
    prepared->run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return {{"seconds", seconds}};
}

json answer(const json& request, std::unique_ptr<Prepared>* prepared) {
  const std::string command = request.at("cmd");
  if (command == "prepare") {
    prepared->reset();  // before the next one takes its memory
    *prepared = request.at("shape").at("kind") == "model" ? prepare_model(request) : prepare_attention(request);
    return {{"variants", {(*prepared)->variant()}}};
  }
  require(*prepared != nullptr, "nothing is prepared, cmd is \"", command, "\"");
  if (command == "run") return time_runs(prepared->get(), request.at("times"));
  require(command == "output", "cmd is \"", command, "\", expected prepare, run or output");
  (*prepared)->write_output(request.at("path"));
  return json::object();
}

}  // namespace
}  // namespace headway::perf

int main() {
  using namespace headway;
  using nlohmann::json;
  const BuildInfo build = build_info();
  const std::string version = build.version + " (" + cpu_info().simd_current + ", Highway " + build.highway +
                              ", oneDNN " + build.onednn_runtime + ")";
  std::cout << json{{"version", version}} << std::endl;
  std::unique_ptr<perf::Prepared> prepared;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << perf::answer(json::parse(line), &prepared) << std::endl;
    } catch (const std::exception& error) {
      std::cout << json{{"error", error.what()}} << std::endl;
    }
  }
  return 0;
}
