// Memory that cannot be had, anywhere: every allocation of import, fuse, session, plan, run, attend, read and write
// fails in turn. The answer is an Error, nothing leaks, and the same objects work once there is memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "headway/fusion.h"
#include "headway/multi_head_attention.h"
#include "headway/onnx.h"
#include "headway/safetensors.h"
#include "tests/robustness/allocation_scenario.h"
#include "tests/robustness/failing_allocator.h"

namespace headway::testing {
namespace {

TEST_F(AllocationFailure, TheSweepFindsFaults) {
  struct Swallows : Scenario {
    std::uint64_t act() override {
      try {
        int* volatile got = new int(3);
        const int value = *got;
        delete got;
        return static_cast<std::uint64_t>(value);
      } catch (const std::bad_alloc&) {
        return 4;
      }
    }
  };
  EXPECT_NE(sweep_allocations([] { return std::make_unique<Swallows>(); }).faults.find("another result"),
            std::string::npos);
  struct Leaks : Scenario {
    std::uint64_t act() override {
      int* volatile first = new int(1);
      const std::unique_ptr<int> second(new int(2));
      delete first;
      return 1;
    }
  };
  const std::string leaks = sweep_allocations([] { return std::make_unique<Leaks>(); }).faults;
  EXPECT_NE(leaks.find("allocation 2 alone: not an Error"), std::string::npos) << leaks;
  EXPECT_NE(leaks.find("1 allocations stay behind"), std::string::npos) << leaks;
}

TEST_F(AllocationFailure, Import) {
  expect_clean(scenario(kNothing, [](Nothing) { return parse_onnx(model_bytes()).graph.nodes().size(); }));
}

TEST_F(AllocationFailure, ImportOfAFile) {
  const std::string path = kModel;
  expect_clean(scenario(kNothing, [&](Nothing) { return read_onnx(path).graph.nodes().size(); }));
}

// Crashed in libstdc++'s variant: see NeverHeld.
TEST_F(AllocationFailure, CopyingAnAttributeOrADim) {
  const Attribute list = std::vector<std::int64_t>(100, 1);
  const SymbolicDim dim = std::string(100, 'n');
  int thrown = 0;
  for (const bool attribute : {true, false}) {
    const FailAllocations failing(1, FailAllocations::kOne);
    try {
      const Attribute list_copy = attribute ? list : Attribute(std::int64_t{1});
      const SymbolicDim dim_copy = attribute ? SymbolicDim(std::int64_t{1}) : dim;
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 2);
}

TEST_F(AllocationFailure, Fuse) {
  for (const Graph* graph : {&model_graph(), &layer_graph()}) {
    expect_clean(scenario(kNothing, [graph](Nothing) {
      FusionReport report;
      const Graph fused = fuse(*graph, all_operators(), &report);
      return fused.nodes().size() * 100 + report.fused.size();
    }));
  }
}

TEST_F(AllocationFailure, MakingASession) {
  for (const Graph* graph : {&model_graph(), &layer_graph()}) {
    // The graphs are copied beforehand: copying one is the caller's business.
    expect_clean(scenario(
        [graph] {
          return std::vector<Graph>{*graph, *graph};
        },
        [](std::vector<Graph>& copies) {
          Graph taken = std::move(copies.back());
          copies.pop_back();
          return Session(std::move(taken), all_operators()).graph().nodes().size();
        }));
  }
}

TEST_F(AllocationFailure, PlanningAShapeAndRunningIt) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  for (const bool fused : {false, true}) {
    const Graph graph = fused ? fuse(layer_graph(), all_operators()) : layer_graph();
    expect_clean(scenario([&graph] { return std::make_unique<Session>(graph, all_operators()); },
                          [](auto& session) { return run(*session, Threads::serial(), 9); }));
  }
}

TEST_F(AllocationFailure, AnotherShapeOnOurOwnPool) {
  const Threads threads = Threads::pool(2);
  const Graph graph = fuse(layer_graph(), all_operators());
  expect_clean(scenario(
      [&] {
        auto session = std::make_unique<Session>(graph, all_operators(), SessionOptions{1});
        run(*session, threads, 4);
        return session;
      },
      [&](auto& session) { return run(*session, threads, 7); }));
}

TEST_F(AllocationFailure, MakingAPoolAndItsThreads) {
  expect_clean(scenario(kNothing, [](Nothing) {
    std::atomic<std::uint64_t> sum{0};
    Threads::pool(3).parallel_for(50, [&](std::int64_t task, int) { sum += static_cast<std::uint64_t>(task); });
    return sum.load();
  }));
}

TEST_F(AllocationFailure, AttentionOnEveryImplementation) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  AttentionSpec spec;
  spec.batch = 2;
  spec.num_heads = 2;
  spec.query_len = 5;
  spec.key_len = 11;
  spec.head_dim = 8;
  const Tensor q = random_floats({2, 2, 5, 8}, 1), k = random_floats({2, 2, 11, 8}, 2),
               v = random_floats({2, 2, 11, 8}, 3);
  for (const std::string& name : attention_implementations()) {
    if (name == "bf16_pairs") continue;
    expect_clean(scenario(kNothing, [&](Nothing) {
      const Attention attention(spec, {name});
      const AlignedBuffer workspace(attention.workspace_bytes(1));
      Tensor out(DataType::kF32, {2, 2, 5, 8});
      AttentionArgs args;
      args.query = q.view(), args.key = k.view(), args.value = v.view(), args.out = out.view();
      attention.run(args, workspace.data(), Threads::serial());
      return hash_of(out.view(), 1);
    }));
  }
}

TEST_F(AllocationFailure, ALayer) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  MultiHeadAttentionSpec spec;
  spec.query_len = 6;
  spec.embed_dim = 16;
  spec.num_heads = 4;
  const Tensor w = random_floats({16, 16}, 1), b = random_floats({16}, 2), x = random_floats({1, 6, 16}, 3);
  MultiHeadAttentionWeights weights;
  weights.query = weights.key = weights.value = weights.output = w.view();
  weights.query_bias = weights.key_bias = weights.value_bias = weights.output_bias = b.view();
  expect_clean(scenario(kNothing, [&](Nothing) {
    const MultiHeadAttention layer(spec, weights);
    const AlignedBuffer workspace(layer.workspace_bytes(1));
    Profiler profiler({1, 16});
    Tensor out(DataType::kF32, {1, 6, 16});
    MultiHeadAttentionArgs args;
    args.query = args.key = args.value = x.view(), args.out = out.view();
    layer.run(args, workspace.data(), Threads::serial(), &profiler);
    return hash_of(out.view(), 1);
  }));
}

TEST_F(AllocationFailure, ReadingAndWritingSafetensors) {
  const std::string path = ::testing::TempDir() + "headway-allocation-failure-" + std::to_string(::getpid());
  const Tensor a = random_floats({3, 5}, 1), b = random_floats({7}, 2);
  const std::map<std::string, ConstTensorView> tensors = {
      {"a", a.view()}, {"b", b.view()}, {"t", a.view().permuted({1, 0})}};
  const std::map<std::string, std::string> metadata = {{"made", "here"}};
  expect_clean(scenario(kNothing, [&](Nothing) {
    write_safetensors(path, tensors, metadata);
    return std::uint64_t{1};
  }));
  expect_clean(scenario(kNothing, [&](Nothing) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    return hash_of(file.tensor("t"), hash_of(file.tensor("a"), file.metadata().size()));
  }));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace headway::testing
