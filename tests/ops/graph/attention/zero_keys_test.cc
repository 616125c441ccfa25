// Attention over no keys at all gives 0, as a Softmax over an empty axis and a product with an empty value do: in every
// engine, operator, mask and rule for empty rows; and the other sizes that may be 0.
#include "headway/fusion.h"
#include "ops/attention/implementation.h"
#include "ops/attention/spec.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

Tensor zeros(const Dims& dims, DataType type = DataType::kF32) {
  return numbers(type, dims, std::vector<double>(static_cast<std::size_t>(element_count(dims)), 0));
}

void expect_zero(const Tensor& got, const Dims& dims) {
  ASSERT_EQ(got.dims(), dims) << got.dims();
  for (const double v : as_doubles(got)) EXPECT_EQ(v, 0);
}

TEST(ZeroKeys, EveryEngineMaskAndEmptyRowRule) {
  int ran = 0;
  for (const ImplementationEntry& entry : implementation_table()) {
    for (const DataType type : {DataType::kF32, DataType::kBF16}) {
      for (const char* rule : {"zero", "nan"}) {
        for (const int mask : {0, 1, 2}) {  // none, bool, float
          for (const std::int64_t queries : {1, 4}) {
            for (const Dims& mask_dims : {Dims{2, 1, 1, 0}, Dims{queries, 0}, Dims{0}, Dims{1}}) {
              if (mask == 0 && mask_dims.rank() != 4) continue;
              AttentionSpec spec;
              spec.type = type;
              spec.batch = 2;
              spec.num_heads = 4;
              spec.num_kv_heads = 2;
              spec.query_len = queries;
              spec.head_dim = 8;
              spec.mask = mask == 0 ? MaskKind::kNone : mask == 1 ? MaskKind::kBool : MaskKind::kAdditive;
              if (!entry.why_impossible(complete_spec(spec)).empty()) continue;
              std::vector<Tensor> inputs =
                  list(zeros({2, 4, queries, 8}, type), zeros({2, 2, 0, 8}, type), zeros({2, 2, 0, 8}, type));
              if (mask != 0) inputs.push_back(zeros(mask_dims, mask == 1 ? DataType::kBool : DataType::kF32));
              const Attributes attributes{{"implementation", std::string(entry.name)},
                                          {"empty_row", std::string(rule)}};
              SCOPED_TRACE(std::string(entry.name) + ' ' + rule + " mask " + std::to_string(mask));
              expect_zero(run_node("Attention", std::move(inputs), attributes, {.first_constant = SIZE_MAX})[0],
                          {2, 4, queries, 8});
              ++ran;
            }
          }
        }
      }
    }
  }
  EXPECT_GE(ran, 100);
}

TEST(ZeroKeys, ScoresHaveNoColumns) {
  for (const char* mode : {"scaled", "softcapped", "biased", "probabilities", "mean_probabilities"}) {
    const auto got = run_node("Attention", list(zeros({1, 2, 3, 4}), zeros({1, 2, 0, 4}), zeros({1, 2, 0, 4})),
                              {{"scores", std::string(mode)}, {"empty_row", std::string("nan")}},
                              {.first_constant = SIZE_MAX, .outputs = 2});
    expect_zero(got[0], {1, 2, 3, 4});
    EXPECT_EQ(got[1].count(), 0) << mode;
  }
}

TEST(ZeroKeys, OnnxAttentionInEveryTypeAndForm) {
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    for (const std::int64_t per_op : {0, 1}) {
      for (const std::int64_t causal : {0, 1}) {
        SCOPED_TRACE(type_name(type));
        const Attributes attributes{{"is_causal", causal}, {"per_op_rounding", per_op}};
        const NodeRun options{.first_constant = SIZE_MAX, .outputs = 4};
        for (const std::int64_t kv_heads : {1, 2}) {
          const auto got = run_node(
              "onnx.Attention",
              list(zeros({1, 2, 3, 4}, type), zeros({1, kv_heads, 0, 4}, type), zeros({1, kv_heads, 0, 5}, type)),
              attributes, options);
          expect_zero(got[0], {1, 2, 3, 5});
          EXPECT_EQ(got[3].count(), 0);
        }
        const auto masked = run_node("onnx.Attention",
                                     list(zeros({1, 2, 3, 4}, type), zeros({1, 2, 0, 4}, type),
                                          zeros({1, 2, 0, 4}, type), zeros({3, 0}, DataType::kBool)),
                                     attributes, options);
        expect_zero(masked[0], {1, 2, 3, 4});
      }
    }
  }
}

TEST(ZeroKeys, MicrosoftMultiHeadAttention) {
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    const Attributes attributes{{"num_heads", std::int64_t{2}}};
    expect_zero(run_node("com.microsoft.MultiHeadAttention",
                         list(zeros({2, 3, 8}, type), zeros({2, 0, 8}, type), zeros({2, 0, 8}, type)), attributes,
                         {.first_constant = SIZE_MAX})[0],
                {2, 3, 8});
  }
}

TEST(ZeroSizes, QueriesHeadsAndBatchMayBeNone) {
  for (const char* op : {"Attention", "onnx.Attention"}) {
    for (const Dims& q : {Dims{2, 2, 0, 4}, Dims{0, 2, 3, 4}, Dims{2, 0, 3, 4}}) {
      for (const std::int64_t keys : {0, 5}) {
        const Dims k{q[0], q[1], keys, 4};
        SCOPED_TRACE(op);
        expect_zero(run_node(op, list(zeros(q), zeros(k), zeros(k)), {}, {.first_constant = SIZE_MAX})[0], q);
      }
    }
  }
}

TEST(NativeAttention, MeanProbabilitiesHaveNoHeads) {
  for (const bool batched : {true, false}) {
    const auto dims = [&](std::int64_t rows) { return batched ? Dims{2, 3, rows, 4} : Dims{3, rows, 4}; };
    const auto got =
        run_node("Attention", list(zeros(dims(2)), zeros(dims(5)), zeros(dims(5))),
                 {{"scores", std::string("mean_probabilities")}}, {.first_constant = SIZE_MAX, .outputs = 2});
    ASSERT_EQ(got[1].dims(), batched ? (Dims{2, 2, 5}) : (Dims{2, 5}));
    for (const double p : as_doubles(got[1])) EXPECT_NEAR(p, 0.2, 1e-6);
  }
}

TEST(ZeroKeys, FusedIsAsUnfused) {
  for (const bool masked : {false, true}) {
    Graph graph;
    const auto input = [&](const char* name, const Dims& dims) {
      return graph.add_input(name, DataType::kF32, symbolic(dims));
    };
    const ValueId q = input("q", {2, 3, 4, 8}), k = input("k", {2, 3, 8, 0}), v = input("v", {2, 3, 0, 8});
    ValueId scores = graph.add_node("MatMul", "scores", {q, k});
    if (masked) scores = graph.add_node("Add", "masked", {scores, input("mask", {2, 1, 1, 0})});
    const ValueId probs = graph.add_node("Softmax", "probs", {scores}, {{"axis", std::int64_t{-1}}});
    graph.add_output("y", graph.add_node("MatMul", "context", {probs, v}));
    FusionReport report;
    const Graph fused = fuse(graph, all_ops(), &report);
    ASSERT_EQ(report.count("attention"), 1) << report.text();
    for (const Graph* one : {&std::as_const(graph), &fused}) {
      const Tensor tensors[] = {random_tensor({2, 3, 4, 8}, std::make_unique<Random>(1).get()), zeros({2, 3, 8, 0}),
                                zeros({2, 3, 0, 8}), zeros({2, 1, 1, 0})};
      std::vector<ConstTensorView> views;
      for (std::size_t i = 0; i < (masked ? 4u : 3u); ++i) views.push_back(tensors[i].view());
      expect_zero(Session(*one, all_ops()).run(views, Threads::openmp(2))[0], {2, 3, 4, 8});
    }
  }
}

}  // namespace
}  // namespace headway::testing
