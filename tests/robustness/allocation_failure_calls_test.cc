// Memory that cannot be had in the calls around a run: a model in one call, look-ups by name and their refusals, plans
// of other shapes that make room, profiles, explanations, and the making of an Error itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "headway/fusion.h"
#include "headway/model.h"
#include "headway/profiler.h"
#include "headway/safetensors.h"
#include "runtime/base/check.h"
#include "tests/robustness/allocation_scenario.h"

namespace headway::testing {
namespace {

class AllocationFailureOfCalls : public AllocationFailure {};

std::uint64_t hash_of_text(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text))); }
std::uint64_t hash_of_texts(const std::vector<std::string>& texts) {
  std::uint64_t seed = 1;
  for (const std::string& text : texts) seed = hash_bytes(std::as_bytes(std::span(text)), seed);
  return seed;
}

/// The message of a refusal that `call` ends in; no memory is let through.
template <class Call>
std::uint64_t refusal(ErrorCode code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != code) throw;
    return hash_of_text(error.what());
  }
  return 0;
}

const std::string kLongName(100, 'n');

TEST_F(AllocationFailureOfCalls, LoadingAModel) {
  const std::string path = kModel;
  for (const bool fused : {true, false}) {
    const ModelOptions options{.fused = fused};
    expect_clean(scenario(kNothing, [&](Nothing) {
      const Model model = load_model(path, options);
      return model.session().graph().nodes().size() * 100 + model.fusion().fused.size() + model.facts().nodes;
    }));
  }
}

TEST_F(AllocationFailureOfCalls, LoadingAModelThatIsNotThere) {
  const std::string path = "/nowhere/" + kLongName + ".onnx";
  expect_clean(scenario(
      kNothing, [&](Nothing) { return refusal(ErrorCode::kIo, [&] { static_cast<void>(load_model(path)); }); }));
}

/// Models to be taken, one each time: copying a graph is the caller's business.
auto copies_of(const OnnxModel& read) {
  return [&read] { return std::vector<OnnxModel>{read, read}; };
}
OnnxModel take(std::vector<OnnxModel>& copies) {
  OnnxModel taken = std::move(copies.back());
  copies.pop_back();
  return taken;
}

TEST_F(AllocationFailureOfCalls, MakingAModelOfABuffer) {
  const OnnxModel read = parse_onnx(model_bytes());
  expect_clean(scenario(copies_of(read), [](std::vector<OnnxModel>& copies) {
    return make_model(take(copies)).session().graph().nodes().size();
  }));
}

TEST_F(AllocationFailureOfCalls, RefusingAModelOfUnknownOperators) {
  OnnxModel read;
  const ValueId x = read.graph.add_input("x", DataType::kF32, {std::int64_t{2}});
  read.graph.add_output("y", read.graph.add_node(kLongName, "first of its kind, by a long name", {x}));
  expect_clean(scenario(copies_of(read), [](std::vector<OnnxModel>& copies) {
    return refusal(ErrorCode::kUnsupported, [&] { make_model(take(copies)); });
  }));
}

TEST_F(AllocationFailureOfCalls, RunningByName) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  const Tensor input = random_floats({2, 9, 16}, 77);
  expect_clean(scenario([] { return std::make_unique<Session>(layer_graph(), all_operators()); },
                        [&](auto& session) {
                          const NamedInput inputs[] = {{"x", input.view()}};
                          return hash_of(session->run(inputs, Threads::serial())[0].view(), 1);
                        }));
}

TEST_F(AllocationFailureOfCalls, RefusalsByName) {
  const Session session(layer_graph(), all_operators());
  const Tensor input = random_floats({2, 9, 16}, 77);
  Tensor output(DataType::kF32, {2, 9, 16});
  const NamedInput unknown[] = {{kLongName, input.view()}};
  const NamedInput twice[] = {{"x", input.view()}, {"x", input.view()}};
  const NamedInput right[] = {{"x", input.view()}};
  const NamedOutput wrong[] = {{kLongName, output.view()}};
  const Threads serial = Threads::serial();
  const std::function<void()> calls[] = {[&] { session.run(unknown, serial); },
                                         [&] { session.run(twice, serial); },
                                         [&] { session.run(std::span<const NamedInput>(), serial); },
                                         [&] { session.run(right, wrong, serial); },
                                         [&] { static_cast<void>(session.input_index(kLongName)); },
                                         [&] { static_cast<void>(session.output_index(kLongName)); }};
  for (const auto& call : calls) {
    expect_clean(scenario(kNothing, [&](Nothing) {
      const std::uint64_t hash = refusal(ErrorCode::kInvalidArgument, call);
      EXPECT_NE(hash, 0u);
      return hash;
    }));
  }
}

TEST_F(AllocationFailureOfCalls, NamesOfASafetensorsFileAndItsRefusals) {
  const std::string path = ::testing::TempDir() + "headway-allocation-names-" + std::to_string(::getpid());
  const Tensor a = random_floats({3, 5}, 1);
  write_safetensors(path, std::map<std::string, ConstTensorView>{{"a", a.view()}, {kLongName, a.view()}});
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::string unknown = "a tensor that is not there";
  std::remove(path.c_str());
  expect_clean(scenario(kNothing, [&](Nothing) { return hash_of_texts(file.names()); }));
  expect_clean(scenario(kNothing, [&](Nothing) {
    return refusal(ErrorCode::kInvalidArgument, [&] { static_cast<void>(file.tensor(unknown)); });
  }));
}

TEST_F(AllocationFailureOfCalls, AProfiledRun) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  const Graph graph = fuse(layer_graph(), all_operators());
  const Threads threads = Threads::pool(2);
  const Tensor input = random_floats({2, 9, 16}, 77);
  expect_clean(scenario([&] { return std::make_unique<Session>(graph, all_operators()); },
                        [&](auto& session) {
                          Profiler profiler({2, 64});
                          const NamedInput inputs[] = {{"x", input.view()}};
                          return hash_of(session->run(inputs, threads, &profiler)[0].view(), 1);
                        }));
}

TEST_F(AllocationFailureOfCalls, ExplainIsWholeOrRefused) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  const std::vector<TensorInfo> infos = {{DataType::kF32, {2, 9, 16}, true}};
  for (const bool fused : {false, true}) {
    const Graph graph = fused ? fuse(layer_graph(), all_operators()) : layer_graph();
    expect_clean(scenario([&] { return std::make_unique<Session>(graph, all_operators()); },
                          [&](auto& session) { return hash_of_text(session->explain(infos, 2)); }));
  }
}

// A stream swallows std::bad_alloc: the messages ended where memory did.
TEST_F(AllocationFailureOfCalls, AMessageIsWholeOrOutOfMemory) {
  const std::string part(200, 'p');
  expect_clean(scenario(kNothing, [&](Nothing) {
    return refusal(ErrorCode::kUnsupported,
                   [&] { fail(ErrorCode::kUnsupported, "a message of parts: ", part, 7, part); });
  }));
}

TEST_F(AllocationFailureOfCalls, ANewShapeWhereThereAreOthersToForget) {
  if (!spare_onednn()) GTEST_SKIP() << "oneDNN is no shared library here";
  expect_clean(scenario(
      [] {
        auto session = std::make_unique<Session>(layer_graph(), all_operators(), SessionOptions{3});
        for (const int length : {3, 4}) run(*session, Threads::serial(), length);
        return session;
      },
      [](auto& session) { return run(*session, Threads::serial(), 7); }));
}

}  // namespace
}  // namespace headway::testing
