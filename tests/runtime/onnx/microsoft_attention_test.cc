// com.microsoft's MultiHeadAttention and Attention from files, against what ONNX Runtime computed: fused, unfused, on
// one worker and on two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "headway/fusion.h"
#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/safetensors.h"
#include "headway/session.h"
#include "headway_test_paths.h"

namespace headway::testing_onnx {
namespace {

namespace fs = std::filesystem;

constexpr double kBound = 1e-5;  // of the largest entry

const fs::path kFolder = fs::path(HEADWAY_SOURCE_DIR) / "tests/fixtures/microsoft_attention";

double apart(const ConstTensorView& got, const ConstTensorView& expected) {
  EXPECT_EQ(got.dims, expected.dims);
  if (!(got.dims == expected.dims)) return 1;
  double largest = 1e-30;
  double worst = 0;
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const double b = expected.as<float>()[i];
    const double difference = std::abs(got.as<float>()[i] - b);
    worst = difference <= worst ? worst : difference;  // NaN counts
    largest = std::max(largest, std::abs(b));
  }
  return worst / largest;
}

/// Largest difference of any output of a case.
double run_case(const Graph& graph, const Registry& registry, const SafetensorsFile& data, const std::string& number,
                int workers) {
  std::vector<ConstTensorView> inputs;
  for (const GraphInput& input : graph.inputs()) {
    inputs.push_back(data.tensor(number + ".in." + graph.value_name(input.value)));
  }
  std::vector<std::string> names;
  for (const Graph::Output& output : graph.outputs()) names.push_back(output.name);
  Graph copy = graph;
  const Session session(std::move(copy), registry);
  const std::vector<Tensor> got = session.run(inputs, Threads::openmp(workers));
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, apart(std::as_const(got[i]).view(), data.tensor(number + ".out." + names[i])));
  }
  return worst;
}

TEST(MicrosoftAttention, AgreesWithOnnxRuntime) {
  Registry registry;
  register_ops(&registry);
  const SafetensorsFile data = SafetensorsFile::open((kFolder / "cases.safetensors").string());
  int cases = 0;
  double worst = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(kFolder)) {
    if (file.path().extension() != ".onnx") continue;
    ++cases;
    const std::string number = file.path().stem().string();
    SCOPED_TRACE(number);
    const Graph graph = read_onnx(file.path().string()).graph;
    FusionReport report;
    const Graph fused = fuse(graph, registry, &report);
    EXPECT_EQ(report.native.size(), 1u) << report.text();
    EXPECT_EQ(report.count("attention"), 0) << report.text();
    for (const Graph* one : {&graph, &fused}) {
      for (const int workers : {1, 2}) {
        const double error = run_case(*one, registry, data, number, workers);
        EXPECT_LE(error, kBound) << workers << " workers";
        worst = std::max(worst, error);
      }
    }
  }
  EXPECT_EQ(cases, 40);
  std::printf("worst error %.2e of the largest entry\n", worst);
}

}  // namespace
}  // namespace headway::testing_onnx
