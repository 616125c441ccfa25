// What the sweeps over failing allocations have in common: scenarios of two functions, the model and the layer that
// they are made of, and what counts as clean.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "headway/onnx.h"
#include "headway/session.h"
#include "headway_test_paths.h"
#include "tests/robustness/allocation_sweep.h"
#include "tests/robustness/failing_allocator.h"
#include "tests/robustness/layer_graph.h"

namespace headway::testing {

inline std::uint64_t hash_of(const ConstTensorView& view, std::uint64_t seed) {
  return hash_bytes({view.data, static_cast<std::size_t>(view.count()) * size_bytes(view.type)}, seed);
}

inline const char* const kModel = HEADWAY_SOURCE_DIR "/tests/fuzz/corpus/onnx/attention_expanded.onnx";

inline const std::vector<std::byte>& model_bytes() {
  static const std::vector<std::byte> bytes = [] {
    std::ostringstream text;
    text << std::ifstream(kModel, std::ios::binary).rdbuf();
    const std::string all = text.str();
    const auto* begin = reinterpret_cast<const std::byte*>(all.data());
    return std::vector<std::byte>(begin, begin + all.size());
  }();
  return bytes;
}

inline const Graph& model_graph() {
  static const Graph graph = parse_onnx(model_bytes()).graph;
  return graph;
}

/// A scenario of two functions: what makes its objects, and what is done with them.
template <class Make, class Act>
auto scenario(Make make, Act act) {
  struct Made : Scenario {
    explicit Made(Make& m, Act a) : objects(m()), action(a) {}
    std::uint64_t act() override { return action(objects); }
    decltype(make()) objects;
    Act action;
  };
  return [make, act]() mutable -> std::unique_ptr<Scenario> { return std::make_unique<Made>(make, act); };
}

struct Nothing {};
inline constexpr auto kNothing = [] { return Nothing{}; };

class AllocationFailure : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_fail_allocations()) GTEST_SKIP() << "malloc cannot be replaced in this build";
  }
  /// For what runs on oneDNN: 2.6 follows null pointers of its own when memory runs out inside it.
  static bool spare_onednn() { return spare_library("libdnnl"); }
  static void expect_clean(const std::function<std::unique_ptr<Scenario>()>& make) {
    const SweepResult result = sweep_allocations(make);
    EXPECT_EQ(result.faults, "");
    EXPECT_GT(result.refused, 0);
    std::printf("%ld allocation points, %ld failed alone and with all after: %ld errors, %ld absorbed%s\n",
                result.points, result.failed, result.refused, result.absorbed,
                result.faults.empty() ? ", all clean" : "");
  }
  static std::uint64_t run(const Session& session, const Threads& threads, std::int64_t length) {
    static const Tensor input = random_floats({2, 9, 16}, 77);
    const ConstTensorView inputs[] = {{input.view().data, DataType::kF32, {2, length, 16}}};
    const std::vector<Tensor> outputs = session.run(inputs, threads);
    return hash_of(outputs[0].view(), 1);
  }
};

}  // namespace headway::testing
