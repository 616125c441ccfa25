// An attention core or layer on random tensors of the driver's.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "headway/attention.h"
#include "headway/multi_head_attention.h"
#include "headway/safetensors.h"
#include "perf/peers/prepared.h"

namespace headway::perf {
namespace {

using nlohmann::json;

AttentionSpec attention_of(const json& shape) {
  AttentionSpec spec;
  spec.batch = shape.at("batch");
  spec.num_heads = shape.at("heads");
  spec.num_kv_heads = shape.at("kv_heads").get<std::int64_t>();
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

class AttentionJob final : public Prepared {
 public:
  explicit AttentionJob(const json& request)
      : inputs_(SafetensorsFile::open(request.at("inputs").get<std::string>())),
        threads_(Threads::openmp(request.at("threads").get<int>())) {
    const json& shape = request.at("shape");
    shape.at("kind") == "core" ? make_core(shape) : make_layer(shape);
  }

  json variant() const override {
    return {{"name", core_ ? "Attention" : "MultiHeadAttention"}, {"ran", summary_of(explain_)}, {"explain", explain_}};
  }
  void run() override { run_(); }
  void write_output(const std::string& path) override {
    // An entry that a run leaves out must not pass for the one of the run before.
    std::fill_n(out_.data<float>(), out_.count(), std::numeric_limits<float>::quiet_NaN());
    run_();
    write_safetensors(path, {{"out", out_.view()}});
  }

 private:
  /// An aligned copy of an input: files put tensors where they fall, engines do not.
  ConstTensorView input(const std::string& name) {
    const ConstTensorView file = inputs_.tensor(name);
    Tensor& tensor = *copies_.emplace_back(std::make_unique<Tensor>(file.type, file.dims));
    copy_elements(file, tensor.view());
    return std::as_const(tensor).view();
  }

  void make_core(const json& shape) {
    const AttentionSpec spec = attention_of(shape);
    core_.emplace(spec);
    workspace_ = AlignedBuffer(core_->workspace_bytes(threads_.workers()));
    out_ = Tensor(DataType::kF32, {spec.batch, spec.num_heads, spec.query_len, spec.head_dim});
    AttentionArgs args;
    args.query = input("query");
    args.key = input("key");
    args.value = input("value");
    if (spec.key_mask != MaskKind::kNone) args.key_mask = input("key_mask");
    args.out = out_.view();
    run_ = [this, args] { core_->run(args, workspace_.data(), threads_); };
    explain_ = core_->explain();
  }

  void make_layer(const json& shape) {
    MultiHeadAttentionSpec spec;
    const AttentionSpec core = attention_of(shape);
    static_cast<AttentionRules&>(spec) = core;
    spec.batch = core.batch;
    spec.query_len = core.query_len;
    spec.embed_dim = shape.at("embed_dim");
    spec.num_heads = core.num_heads;
    spec.self_attention = true;
    MultiHeadAttentionWeights weights;
    split_in_proj(inputs_.tensor("in_proj_weight"), inputs_.tensor("in_proj_bias"), &weights);
    weights.output = inputs_.tensor("out_proj_weight");
    weights.output_bias = inputs_.tensor("out_proj_bias");
    layer_.emplace(spec, weights);
    workspace_ = AlignedBuffer(layer_->workspace_bytes(threads_.workers()));
    out_ = Tensor(DataType::kF32, {spec.batch, spec.query_len, spec.embed_dim});
    MultiHeadAttentionArgs args;
    args.query = args.key = args.value = input("x");
    if (spec.key_mask != MaskKind::kNone) args.key_mask = input("key_mask");
    args.out = out_.view();
    run_ = [this, args] { layer_->run(args, workspace_.data(), threads_); };
    explain_ = layer_->explain();
  }

  SafetensorsFile inputs_;
  Threads threads_;
  std::vector<std::unique_ptr<Tensor>> copies_;
  std::optional<Attention> core_;
  std::optional<MultiHeadAttention> layer_;
  AlignedBuffer workspace_;
  Tensor out_;
  std::function<void()> run_;
  std::string explain_;
};

}  // namespace

std::unique_ptr<Prepared> prepare_attention(const json& request) { return std::make_unique<AttentionJob>(request); }

}  // namespace headway::perf
