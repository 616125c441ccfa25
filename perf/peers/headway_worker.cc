// This library as a contestant of compare.py: one attention core or layer at a time, prepared, run and timed by lines
// of JSON on stdin and stdout. Decides nothing: shapes, inputs, threads and the number of runs come from the driver.
//
//   {"cmd": "prepare", "shape": {..}, "inputs": file, "threads": n}  -> {"variants": [{"name", "ran", "explain"}]}
//   {"cmd": "run", "variant": 0, "times": k}                         -> {"seconds": [..]}, after one untimed run
//   {"cmd": "output", "variant": 0, "path": file}                    -> {}; runs, writes "out": [B, Hq, Sq, D], [B, S,
//   E]
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "headway/attention.h"
#include "headway/multi_head_attention.h"
#include "headway/safetensors.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/target.h"

namespace headway::perf {
namespace {

using nlohmann::json;

/// Everything that one shape needs; made by prepare, replaced by the next.
struct Job {
  explicit Job(const json& request)
      : inputs(SafetensorsFile::open(request.at("inputs").get<std::string>())),
        threads(Threads::openmp(request.at("threads").get<int>())) {}

  /// An aligned copy of an input: files put tensors where they fall, engines do not.
  ConstTensorView input(const std::string& name) {
    const ConstTensorView file = inputs.tensor(name);
    Tensor& tensor = copies.emplace_back(std::make_unique<Tensor>(file.type, file.dims)).operator*();
    copy(file, tensor.view());
    return std::as_const(tensor).view();
  }

  SafetensorsFile inputs;
  Threads threads;
  std::vector<std::unique_ptr<Tensor>> copies;
  std::optional<Attention> core;
  std::optional<MultiHeadAttention> layer;
  AlignedBuffer workspace;
  Tensor out;
  std::function<void()> run;
  std::string explain;
};

AttentionSpec attention_of(const json& shape) {
  AttentionSpec spec;
  spec.batch = shape.at("batch");
  spec.num_heads = shape.at("heads");
  spec.num_kv_heads = shape.at("kv_heads");
  spec.query_len = shape.at("query_len");
  spec.key_len = shape.at("key_len");
  spec.head_dim = shape.at("head_dim");
  if (!shape.at("scale").is_null()) spec.scale = shape.at("scale").get<float>();
  spec.causal = shape.at("causal").get<bool>() ? Causal::kTopLeft : Causal::kNone;
  spec.key_mask = shape.at("key_mask").get<bool>() ? MaskKind::kBool : MaskKind::kNone;
  return spec;
}

/// The parts of an explanation, each up to the first detail: "output: highway AVX3; …". Refusals are indented.
std::string summary_of(const std::string& explanation) {
  std::istringstream lines(explanation);
  std::string summary;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(' ') || colon == std::string::npos) continue;
    if (!summary.empty()) summary += "; ";
    summary += line.substr(0, line.find(',', colon));
  }
  return summary;
}

void prepare_core(const json& shape, Job* job) {
  const AttentionSpec spec = attention_of(shape);
  job->core.emplace(spec);
  job->workspace = AlignedBuffer(job->core->workspace_bytes(job->threads.workers()));
  job->out = Tensor(DataType::kF32, {spec.batch, spec.num_heads, spec.query_len, spec.head_dim});
  AttentionArgs args;
  args.query = job->input("query");
  args.key = job->input("key");
  args.value = job->input("value");
  if (spec.key_mask != MaskKind::kNone) args.key_mask = job->input("key_mask");
  args.out = job->out.view();
  job->run = [job, args] { job->core->run(args, job->workspace.data(), job->threads); };
  job->explain = job->core->explain();
}

void prepare_layer(const json& shape, Job* job) {
  MultiHeadAttentionSpec spec;
  spec.attention = attention_of(shape);
  spec.batch = spec.attention.batch;
  spec.query_len = spec.attention.query_len;
  spec.embed_dim = shape.at("embed_dim");
  spec.num_heads = spec.attention.num_heads;
  spec.self_attention = true;
  MultiHeadAttentionWeights weights;
  split_in_proj(job->inputs.tensor("in_proj_weight"), job->inputs.tensor("in_proj_bias"), &weights);
  weights.output = job->inputs.tensor("out_proj_weight");
  weights.output_bias = job->inputs.tensor("out_proj_bias");
  job->layer.emplace(spec, weights);
  job->workspace = AlignedBuffer(job->layer->workspace_bytes(job->threads.workers()));
  job->out = Tensor(DataType::kF32, {spec.batch, spec.query_len, spec.embed_dim});
  MultiHeadAttentionArgs args;
  args.query = args.key = args.value = job->input("x");
  if (spec.attention.key_mask != MaskKind::kNone) args.key_mask = job->input("key_mask");
  args.out = job->out.view();
  job->run = [job, args] { job->layer->run(args, job->workspace.data(), job->threads); };
  job->explain = job->layer->explain();
}

json time_runs(const Job& job, int times) {
  using Clock = std::chrono::steady_clock;
  job.run();
  json seconds = json::array();
  for (int i = 0; i < times; ++i) {
    const Clock::time_point begin = Clock::now();
    job.run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return {{"seconds", seconds}};
}

json answer(const json& request, std::unique_ptr<Job>* job) {
  const std::string command = request.at("cmd");
  if (command == "prepare") {
    job->reset();
    auto made = std::make_unique<Job>(request);
    const json& shape = request.at("shape");
    shape.at("kind") == "core" ? prepare_core(shape, made.get()) : prepare_layer(shape, made.get());
    *job = std::move(made);
    const json variant = {{"name", (*job)->core ? "Attention" : "MultiHeadAttention"},
                          {"ran", summary_of((*job)->explain)},
                          {"explain", (*job)->explain}};
    return {{"variants", {variant}}};
  }
  require(*job != nullptr, "nothing is prepared, cmd is \"", command, "\"");
  if (command == "run") return time_runs(**job, request.at("times"));
  require(command == "output", "cmd is \"", command, "\", expected prepare, run or output");
  // An entry that a run leaves out must not pass for the one of the run before.
  std::fill_n((*job)->out.data<float>(), (*job)->out.count(), std::numeric_limits<float>::quiet_NaN());
  (*job)->run();
  write_safetensors(request.at("path"), {{"out", (*job)->out.view()}});
  return json::object();
}

}  // namespace
}  // namespace headway::perf

int main() {
  using namespace headway;
  using nlohmann::json;
  const std::string version = std::string(HEADWAY_VERSION) + " (" + simd_target() + ", Highway " + highway_version() +
                              ", oneDNN " + onednn_version() + ")";
  std::cout << json{{"version", version}} << std::endl;
  std::unique_ptr<perf::Job> job;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << perf::answer(json::parse(line), &job) << std::endl;
    } catch (const std::exception& error) {
      std::cout << json{{"error", error.what()}} << std::endl;
    }
  }
  return 0;
}
