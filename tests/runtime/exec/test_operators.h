// Operators for tests of the session: small, exact in f32, and suspicious of what the session hands them.
#pragma once

#include <gtest/gtest.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/operator.h"
#include "headway/session.h"
#include "runtime/base/check.h"

namespace headway::testing {

using RunFunction =
    std::function<void(const RunContext&, std::span<const ConstTensorView>, std::span<const TensorView>)>;

/// An operator made of functions, which counts its plans and runs.
class FunctionOperator : public Operator {
 public:
  struct Functions {
    std::function<std::vector<TensorInfo>(const NodeContext&)> infer;
    RunFunction run;
    std::function<std::size_t(int)> workspace_bytes = [](int) { return std::size_t{0}; };
    std::string explain = {};
  };
  struct Counts {
    std::atomic<int> plans{0};
    std::atomic<int> runs{0};
  };

  FunctionOperator(std::string name, Functions functions) : name_(std::move(name)), functions_(std::move(functions)) {}
  std::string_view name() const override { return name_; }
  /// Written for numbers: a session knows nothing else.
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    std::vector<TensorInfo> inputs;
    for (const ValueInfo& input : node.inputs) inputs.push_back(tensor_info(input));
    std::vector<ValueInfo> outputs;
    for (const TensorInfo& output : functions_.infer({node.attributes, inputs, node.constants, node.num_outputs})) {
      outputs.push_back(value_info(output));
    }
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext&, std::span<const TensorInfo> outputs) const override {
    ++counts_->plans;
    auto plan = std::make_unique<Plan>();
    plan->functions = functions_;
    plan->counts = counts_;
    plan->infos.assign(outputs.begin(), outputs.end());
    return plan;
  }
  std::shared_ptr<Counts> counts() const { return counts_; }

 private:
  struct Plan : NodePlan {
    Functions functions;
    std::shared_ptr<Counts> counts;
    std::vector<TensorInfo> infos;
    std::size_t workspace_bytes(int workers) const override { return functions.workspace_bytes(workers); }
    void run(const RunContext& context, std::span<const ConstTensorView> inputs,
             std::span<const TensorView> outputs) const override {
      ++counts->runs;
      for (const auto& input : inputs) require(!input || input.is_contiguous(), "an input is not contiguous");
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        require(outputs[i].present == infos[i].present, "an output is ", outputs[i].present ? "present" : "absent");
        require(!outputs[i] || outputs[i].is_contiguous(), "an output is not contiguous");
        require(!outputs[i] || outputs[i].dims == infos[i].dims, "an output is not as inferred");
      }
      functions.run(context, inputs, outputs);
    }
    std::string explain() const override { return functions.explain; }
  };
  std::string name_;
  Functions functions_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

inline std::vector<TensorInfo> same_as_first(const NodeContext& node) { return {node.inputs[0]}; }

inline std::vector<TensorInfo> same_as_both(const NodeContext& node) {
  require(node.inputs[0].dims == node.inputs[1].dims, "b is ", node.inputs[1].dims, ", expected ", node.inputs[0].dims,
          " as a");
  return {node.inputs[0]};
}

/// y = 2x, elements split over tasks.
inline FunctionOperator::Functions double_functions() {
  return {same_as_first,
          [](const RunContext& context, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
            const auto* x = in[0].as<float>();
            auto* y = out[0].as<float>();
            context.threads.parallel_for(in[0].count(), [&](std::int64_t i, int) { y[i] = 2 * x[i]; });
          },
          [](int) { return std::size_t{0}; }, "doubles\none task an element"};
}

/// y = a + b, by way of a scratch of 256 bytes a worker that is checked for being the worker's own.
inline FunctionOperator::Functions add_functions() {
  return {same_as_both,
          [](const RunContext& context, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
            require(reinterpret_cast<std::uintptr_t>(context.workspace) % 64 == 0, "workspace is not aligned");
#if defined(__GLIBC__)
            // Without a sanitizer, a workspace that is too small would go unnoticed.
            require(malloc_usable_size(context.workspace) >= static_cast<std::size_t>(context.threads.workers()) * 256,
                    "workspace is too small");
#endif
            const auto* a = in[0].as<float>();
            const auto* b = in[1].as<float>();
            auto* y = out[0].as<float>();
            context.threads.parallel_for(in[0].count(), [&](std::int64_t i, int worker) {
              volatile float* scratch = reinterpret_cast<float*>(context.workspace + worker * 256);
              for (int k = 0; k < 64; ++k) scratch[k] = a[i] + static_cast<float>(k);
              for (int k = 0; k < 64; ++k) require(scratch[k] == a[i] + static_cast<float>(k), "scratch is shared");
              y[i] = scratch[0] + b[i];
            });
          },
          [](int workers) { return static_cast<std::size_t>(workers) * 256; }, ""};
}

/// low = x − 1, high = x + 1; with attribute "no_high" the second output is absent.
inline FunctionOperator::Functions around_functions() {
  return {[](const NodeContext& node) {
            TensorInfo high = node.inputs[0];
            high.present = node.attributes.integer("no_high", 0) == 0;
            return std::vector<TensorInfo>{node.inputs[0], high};
          },
          [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
            for (std::int64_t i = 0; i < in[0].count(); ++i) {
              out[0].as<float>()[i] = in[0].as<float>()[i] - 1;
              if (out[1]) out[1].as<float>()[i] = in[0].as<float>()[i] + 1;
            }
          }};
}

/// y = x + 100 when the second input is absent, else x.
inline FunctionOperator::Functions optional_functions() {
  return {same_as_first, [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
            for (std::int64_t i = 0; i < in[0].count(); ++i) {
              out[0].as<float>()[i] = in[0].as<float>()[i] + (in[1] ? 0.0f : 100.0f);
            }
          }};
}

/// Throws when the first element is negative.
inline FunctionOperator::Functions picky_functions() {
  return {same_as_first, [](const RunContext&, std::span<const ConstTensorView> in, std::span<const TensorView> out) {
            require(in[0].as<float>()[0] >= 0, "x[0] is ", in[0].as<float>()[0], ", expected 0 or more");
            copy_elements(in[0], out[0]);
          }};
}

/// The operators above, by name, and their counts.
class TestRegistry {
 public:
  TestRegistry() {
    add("Double", double_functions());
    add("Add", add_functions());
    add("Around", around_functions());
    add("Optional", optional_functions());
    add("Picky", picky_functions());
  }
  void add(const std::string& name, FunctionOperator::Functions functions) {
    auto op = std::make_unique<FunctionOperator>(name, std::move(functions));
    counts_[name] = op->counts();
    registry_.add(std::move(op));
  }
  const Registry& get() const { return registry_; }
  int plans(const std::string& name) const { return counts_.at(name)->plans; }
  int runs(const std::string& name) const { return counts_.at(name)->runs; }

 private:
  Registry registry_;
  std::map<std::string, std::shared_ptr<FunctionOperator::Counts>> counts_;
};

/// y = 2x + x over f32 [n], "double" then "add".
inline Graph triple_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, {"n"});
  const ValueId twice = graph.add_node("Double", "double", {x});
  graph.add_output("y", graph.add_node("Add", "add", {twice, x}));
  return graph;
}

inline std::shared_ptr<const Tensor> tensor_of(const std::vector<float>& values) {
  auto tensor = std::make_shared<Tensor>(DataType::kF32, Dims{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor->data<float>());
  return tensor;
}

inline ConstTensorView input_of(const std::vector<float>& values) {
  return view_of(values.data(), {static_cast<std::int64_t>(values.size())});
}

inline TensorView output_of(std::vector<float>* values) {
  return view_of(values->data(), {static_cast<std::int64_t>(values->size())});
}

/// Runs a session of f32 vectors; returns its first output.
inline std::vector<float> run_one(const Session& session, const std::vector<ConstTensorView>& inputs,
                                  const Threads& threads = Threads::serial()) {
  const std::vector<Tensor> outputs = session.run(inputs, threads);
  const auto* data = outputs[0].data<float>();
  return {data, data + outputs[0].count()};
}

}  // namespace headway::testing
