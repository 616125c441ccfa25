// onnx.Attention in f16 and bf16: on the engines that f32 has, rounded once at the end; per step where the node asks.
#include <limits>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

constexpr NodeRun kAllInputs{.first_constant = SIZE_MAX};

Tensor narrowed(const Tensor& tensor, DataType type) { return numbers(type, tensor.dims(), as_doubles(tensor)); }

/// Numbers of the type, as f32.
Tensor random_of(DataType type, const Dims& dims, Random* random) {
  return narrowed(narrowed(random_tensor(dims, random), type), DataType::kF32);
}

std::vector<Tensor> inputs_in(DataType type, DataType value_type, DataType mask_type, const std::vector<Dims>& dims) {
  std::vector<Tensor> inputs;
  Random random(11);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const DataType exact = type == DataType::kF32 ? DataType::kF16 : type;
    Tensor wide = random_of(exact, dims[i], &random);
    const DataType own = i == 3 ? mask_type : i == 2 || i == 5 ? value_type : type;
    if (own == DataType::kBool) {
      std::vector<double> bits;
      for (const double v : as_doubles(wide)) bits.push_back(v > -0.7 ? 1 : 0);
      inputs.push_back(numbers(own, dims[i], bits));
    } else {
      inputs.push_back(narrowed(wide, own));
    }
  }
  return inputs;
}

/// Every output is the f32 one, whose inputs are the same numbers, rounded once.
void expect_rounded_once(const std::vector<Tensor>& got, const std::vector<Tensor>& wide, double slack) {
  ASSERT_EQ(got.size(), wide.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].dims(), wide[o].dims());
    const auto a = as_doubles(got[o]), b = as_doubles(wide[o]);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double nearest = as_doubles(numbers(got[o].type(), {1}, {b[i]}))[0];
      EXPECT_LE(std::abs(a[i] - b[i]), std::abs(nearest - b[i]) + slack * (1 + std::abs(b[i])))
          << "output " << o << " element " << i;
    }
  }
}

TEST(NarrowAttention, IsF32AttentionRoundedOnce) {
  struct Form {
    std::vector<Dims> dims;
    Attributes attributes;
    int outputs;
    std::vector<std::size_t> absent;
  };
  const std::vector<Form> forms = {
      {{{2, 4, 9, 16}, {2, 4, 21, 16}, {2, 4, 21, 16}}, {}, 1, {}},
      {{{2, 4, 1, 16}, {2, 2, 70, 16}, {2, 2, 70, 8}}, {{"softcap", 3.0f}}, 1, {}},
      {{{1, 4, 9, 16}, {1, 2, 9, 16}, {1, 2, 9, 16}, {9, 9}}, {{"is_causal", std::int64_t{1}}}, 1, {}},
      {{{2, 4, 5, 16}, {2, 4, 5, 16}, {2, 4, 5, 16}, {2, 1, 5, 9}, {2, 4, 4, 16}, {2, 4, 4, 16}},
       {{"qk_matmul_output_mode", std::int64_t{3}}},
       4,
       {}},
      {{{2, 9, 64}, {2, 9, 32}, {2, 9, 32}},
       {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}},
       1,
       {}},
  };
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (std::size_t f = 0; f < forms.size(); ++f) {
      const Form& form = forms[f];
      for (const DataType mask : {DataType::kBool, DataType::kF32, type}) {
        if (form.dims.size() < 4 && mask != type) continue;
        SCOPED_TRACE(std::string(type_name(type)) + " form " + std::to_string(f) + " mask " + type_name(mask));
        NodeRun options = kAllInputs;
        options.outputs = form.outputs;
        std::vector<Tensor> narrow = inputs_in(type, type, mask, form.dims);
        std::vector<Tensor> wide;
        for (const Tensor& tensor : narrow) {
          wide.push_back(narrowed(tensor, tensor.type() == DataType::kBool ? DataType::kBool : DataType::kF32));
        }
        const auto expected = run_node("onnx.Attention", std::move(wide), form.attributes, options);
        const auto got = run_node("onnx.Attention", std::move(narrow), form.attributes, options);
        EXPECT_EQ(got[0].type(), type);
        // bf16 pairs round the probabilities to bf16 where the CPU has such products.
        expect_rounded_once(got, expected, type == DataType::kBF16 ? 0x1p-7 : 2e-6);
      }
    }
  }
}

TEST(NarrowAttention, ValuesMayHaveAnotherTypeThanQueries) {
  const std::vector<Dims> dims{{1, 2, 5, 8}, {1, 2, 7, 8}, {1, 2, 7, 8}};
  for (const auto& [type, value_type] : {std::pair(DataType::kF16, DataType::kF32),
                                         {DataType::kF32, DataType::kF16},
                                         {DataType::kBF16, DataType::kF16}}) {
    std::vector<Tensor> narrow = inputs_in(type, value_type, type, dims), wide;
    for (const Tensor& tensor : narrow) wide.push_back(narrowed(tensor, DataType::kF32));
    const auto expected = run_node("onnx.Attention", std::move(wide), {}, kAllInputs);
    const auto got = run_node("onnx.Attention", std::move(narrow), {}, kAllInputs);
    EXPECT_EQ(got[0].type(), type);
    expect_rounded_once(got, expected, 2e-6);
  }
}

std::string explained(DataType type, const Attributes& attributes) {
  Graph graph;
  std::vector<ValueId> inputs;
  std::vector<TensorInfo> infos;
  for (const char* name : {"q", "k", "v"}) {
    infos.push_back({type, {1, 4, 64, 32}});
    inputs.push_back(graph.add_input(name, type, symbolic({1, 4, 64, 32})));
  }
  graph.add_output("y", graph.add_node("onnx.Attention", "node", inputs, attributes));
  return Session(std::move(graph), all_ops()).explain(infos, 2);
}

TEST(NarrowAttention, SaysWhichEngineRuns) {
  expect_contains(explained(DataType::kF16, {}), "f16 widened to f32, tiled: ");
  expect_contains(explained(DataType::kF32, {}), "    tiled: ");
  EXPECT_EQ(explained(DataType::kBF16, {}).find("rounded"), std::string::npos);
  expect_contains(explained(DataType::kF16, {{"per_op_rounding", std::int64_t{1}}}), "rounded: f16");
  expect_contains(explained(DataType::kF64, {}), "reference: double");
}

TEST(NarrowAttention, RoundsPerOpWhereTheNodeSaysSo) {
  // 300 equal scores: their probabilities add up to 300 in f32, to 256 in bf16.
  const auto run = [](std::int64_t per_op) {
    std::vector<Tensor> inputs = list(numbers(DataType::kBF16, {1, 1, 1, 1}, {0}),
                                      numbers(DataType::kBF16, {1, 1, 300, 1}, std::vector<double>(300, 0)),
                                      numbers(DataType::kBF16, {1, 1, 300, 1}, std::vector<double>(300, 1)));
    return as_doubles(run_node("onnx.Attention", std::move(inputs), {{"per_op_rounding", per_op}}, kAllInputs)[0])[0];
  };
  EXPECT_EQ(run(0), 1);
  EXPECT_EQ(run(1), as_doubles(numbers(DataType::kBF16, {1}, {300.0 / 256}))[0]);
}

TEST(NarrowAttention, AMaskThatDoesNotFitIsNotReadPast) {
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF64, DataType::kF32}) {
    for (const std::int64_t per_op : {0, 1}) {
      for (const Dims& mask : {Dims{2, 5}, Dims{0, 5}, Dims{3, 9}, Dims{7, 1, 3, 5}}) {
        std::vector<Tensor> inputs = inputs_in(type, type, DataType::kBool, {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}});
        inputs.push_back(
            numbers(DataType::kBool, mask, std::vector<double>(static_cast<std::size_t>(element_count(mask)), 1)));
        expect_contains(error_of([&] {
                          run_node("onnx.Attention", std::move(inputs), {{"per_op_rounding", per_op}}, kAllInputs);
                        }),
                        "mask");
      }
    }
  }
}

}  // namespace
}  // namespace headway::testing
