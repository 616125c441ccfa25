// com.microsoft.GroupQueryAttention from files, against what ONNX Runtime computed: attention and the present, on one
// worker and on two; and what the node may not say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "headway/onnx.h"
#include "headway/register_ops.h"
#include "headway/safetensors.h"
#include "headway/session.h"
#include "headway_test_paths.h"
#include "ops/base/numeric.h"
#include "tests/runtime/error_of.h"

namespace headway::testing_onnx {
namespace {

namespace fs = std::filesystem;

const fs::path kGqaFolder = fs::path(HEADWAY_SOURCE_DIR) / "tests/fixtures/group_query_attention";

/// Largest difference, in shares of the largest entry.
template <class T>
double difference_of(const ConstTensorView& got, const ConstTensorView& expected) {
  double largest = 1e-30, worst = 0;
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const double a = widen(got.as<T>()[i]), b = widen(expected.as<T>()[i]);
    const double difference = std::abs(a - b);
    worst = difference <= worst ? worst : difference;  // NaN counts
    largest = std::max(largest, std::abs(b));
  }
  return worst / largest;
}

TEST(GroupQueryAttention, AgreesWithOnnxRuntime) {
  Registry registry;
  register_ops(&registry);
  const SafetensorsFile data = SafetensorsFile::open((kGqaFolder / "cases.safetensors").string());
  int cases = 0;
  double worst = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(kGqaFolder)) {
    if (file.path().extension() != ".onnx") continue;
    ++cases;
    const std::string number = file.path().stem().string();
    SCOPED_TRACE(number);
    const Session session(read_onnx(file.path().string()).graph, registry);
    std::vector<ConstTensorView> inputs;
    for (const GraphInput& input : session.graph().inputs()) {
      inputs.push_back(data.tensor(number + ".in." + session.graph().value_name(input.value)));
    }
    for (const int workers : {1, 2}) {
      const std::vector<Tensor> got = session.run(inputs, Threads::openmp(workers));
      ASSERT_EQ(got.size(), 3u);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const ConstTensorView want = data.tensor(number + ".out." + session.graph().outputs()[i].name);
        const ConstTensorView have = std::as_const(got[i]).view();
        ASSERT_EQ(have.dims, want.dims) << "output " << i;
        ASSERT_EQ(have.type, want.type) << "output " << i;
        const bool half = want.type == DataType::kF16;
        const double error = half ? difference_of<Float16>(have, want) : difference_of<float>(have, want);
        EXPECT_LE(error, half ? 2e-3 : 1e-5) << "output " << i << ", " << workers << " workers";
        if (!half) worst = std::max(worst, error);
      }
    }
  }
  EXPECT_EQ(cases, 28);
  std::printf("worst error %.2e of the largest entry\n", worst);
}

/// A node of two sequences, three new tokens, four heads over two, and a past of five positions.
struct GqaCase {
  Attributes attributes{{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}};
  Dims query{2, 3, 32}, key{2, 3, 16}, past{2, 2, 5, 8};
  std::vector<std::int32_t> lengths{7, 6};
  std::int32_t total = 8;

  std::string refused(ErrorCode code = ErrorCode::kInvalidArgument) const {
    Registry registry;
    register_ops(&registry);
    Graph graph;
    std::vector<Tensor> tensors;
    std::vector<ValueId> values;
    const auto add = [&](const char* name, DataType type, const Dims& dims) {
      std::vector<SymbolicDim> sizes(dims.begin(), dims.end());
      values.push_back(graph.add_input(name, type, sizes));
      tensors.emplace_back(type, dims);
    };
    add("query", DataType::kF32, query);
    add("key", DataType::kF32, key);
    add("value", DataType::kF32, key);
    add("past_key", DataType::kF32, past);
    add("past_value", DataType::kF32, past);
    add("seqlens_k", DataType::kI32, {static_cast<std::int64_t>(lengths.size())});
    add("total", DataType::kI32, {1});
    for (Tensor& t : tensors) std::fill_n(t.view().data, tensor_bytes(t.type(), t.dims()), std::byte{0});
    std::copy(lengths.begin(), lengths.end(), tensors[5].data<std::int32_t>());
    *tensors[6].data<std::int32_t>() = total;
    graph.add_output("out", graph.add_node("com.microsoft.GroupQueryAttention", "gqa", values, attributes));
    std::vector<ConstTensorView> views;
    for (const Tensor& t : tensors) views.push_back(t.view());
    return testing::error_of([&] { Session(std::move(graph), registry).run(views, Threads::serial()); }, code);
  }
};

TEST(GroupQueryAttention, RefusesWhatDoesNotFit) {
  using testing::expect_contains;
  GqaCase c;
  c.attributes.set("kv_num_heads", std::int64_t{3});
  expect_contains(c.refused(), "kv_num_heads is 3, expected a divisor of num_heads = 4");
  c = GqaCase();
  c.key = {2, 3, 24};
  expect_contains(c.refused(), "key has dims [2, 3, 24], expected [2, 3, 16]");
  c = GqaCase();
  c.past = {2, 1, 5, 8};
  expect_contains(c.refused(), "past_key has dims [2, 1, 5, 8], expected [2, 2, 5, 8]");
  c = GqaCase();
  c.lengths = {8, 6};
  expect_contains(c.refused(), "seqlens_k[0] is 8, expected 2 to 7");
  c = GqaCase();
  c.lengths = {7, 1};
  expect_contains(c.refused(), "seqlens_k[1] is 1, expected 2 to 7");
  c = GqaCase();
  c.total = 9;
  expect_contains(c.refused(), "total_sequence_length is 9, expected 3 to 8");
  c = GqaCase();
  c.attributes.set("k_quant_type", std::string("PER_TENSOR"));
  expect_contains(c.refused(ErrorCode::kUnsupported), "k_quant_type is PER_TENSOR");
  c = GqaCase();
  c.attributes.set("do_rotary", std::int64_t{1});
  expect_contains(c.refused(), "do_rotary is 1, but cos_cache is absent");
}

}  // namespace
}  // namespace headway::testing_onnx
