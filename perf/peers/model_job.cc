// A model file on tensors of the driver's: imported, fused, in a session, outputs in memory of their own.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "headway/model.h"
#include "headway/safetensors.h"
#include "perf/peers/prepared.h"
#include "runtime/base/check.h"

namespace headway::perf {
namespace {

using nlohmann::json;

class ModelJob final : public Prepared {
 public:
  explicit ModelJob(const json& request)
      : file_(SafetensorsFile::open(request.at("inputs").get<std::string>())),
        threads_(Threads::openmp(request.at("threads").get<int>())),
        model_(load_model(request.at("shape").at("model").get<std::string>())) {
    std::vector<TensorInfo> infos;
    for (const GraphInput& input : model_.session().graph().inputs()) {
      const ConstTensorView from = file_.tensor(model_.session().graph().value_name(input.value));
      Tensor& tensor = inputs_.emplace_back(from.type, from.dims);
      copy_elements(from, tensor.view());
      infos.push_back({from.type, from.dims, true});
    }
    for (const Tensor& tensor : inputs_) input_views_.push_back(tensor.view());
    for (const TensorInfo& info : model_.session().output_infos(infos)) outputs_.emplace_back(info.type, info.dims);
    for (Tensor& tensor : outputs_) output_views_.push_back(tensor.view());
  }

  json variant() const override {
    const auto fused = static_cast<std::size_t>(model_.fusion().count("attention"));
    const std::size_t nodes = model_.session().graph().nodes().size();
    return {{"name", "Session"},
            {"ran", "attention fused in " + std::to_string(fused) + " of " +
                        std::to_string(fused + model_.fusion().missed.size())},
            {"nodes", nodes},
            {"attention_share", attention_share()}};
  }
  void run() override { model_.session().run(input_views_, output_views_, threads_); }
  /// The first output of floats.
  void write_output(const std::string& path) override {
    const auto first = std::find_if(outputs_.begin(), outputs_.end(),
                                    [](const Tensor& tensor) { return tensor.type() == DataType::kF32; });
    require(first != outputs_.end(), "the model has no f32 output");
    // An entry that a run leaves out must not pass for the one of the run before.
    std::fill_n(first->data<float>(), first->count(), std::numeric_limits<float>::quiet_NaN());
    run();
    write_safetensors(path, {{"out", first->view()}});
  }

 private:
  /// Of the time in operators, that in attention operators, projections included where they are fused.
  double attention_share() const {
    Profiler profiler({threads_.workers(), 0});
    model_.session().run(input_views_, output_views_, threads_);
    for (int i = 0; i < 9; ++i) model_.session().run(input_views_, output_views_, threads_, &profiler);
    std::map<std::string, bool> attention;
    for (const Node& node : model_.session().graph().nodes()) {
      attention[node.name.empty() ? node.op : node.name] |= node.op.find("Attention") != std::string::npos;
    }
    double all = 0, part = 0;
    for (const Profiler::Row& row : profiler.rows()) {
      if (row.category != "node") continue;
      all += row.seconds;
      if (attention[row.name]) part += row.seconds;
    }
    return all > 0 ? part / all : 0;
  }

  SafetensorsFile file_;
  Threads threads_;
  Model model_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<ConstTensorView> input_views_;
  std::vector<TensorView> output_views_;
};

}  // namespace

std::unique_ptr<Prepared> prepare_model(const json& request) { return std::make_unique<ModelJob>(request); }

}  // namespace headway::perf
