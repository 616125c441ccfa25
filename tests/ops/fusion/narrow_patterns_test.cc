// Norms and activations written as operators in f16 and bf16: found, computed in f32, rounded once; Casts inside
// included. And the report of what runs natively.
#include <numbers>

#include "headway/fusion.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

constexpr std::int64_t kWidth = 16;
const Attributes kLastAxis{{"axes", std::vector<std::int64_t>{-1}}};

/// How an exporter writes it down.
struct Form {
  bool rms = false;
  bool bias = true;
  bool wide_inside = false;  ///< Cast to f32 at the start, back before the weights
  bool wide_square = false;  ///< Cast to f32 around the square and its mean only
  bool reciprocal = false;   ///< times 1 / √ instead of over √
};

struct Built {
  Graph graph;
  std::vector<double> weight, bias;
};

Built build(DataType type, const Form& form) {
  Built built;
  Graph& g = built.graph;
  const auto constant = [&](const char* name, DataType of, const Dims& dims, const std::vector<double>& values) {
    return g.add_constant(name, std::make_shared<const Tensor>(numbers(of, dims, values)));
  };
  const auto op = [&](const char* kind, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return g.add_node(kind, kind + std::to_string(g.nodes().size()), std::move(inputs), std::move(attributes));
  };
  const auto cast = [&](ValueId value, DataType to) {
    const std::int64_t number = to == DataType::kF32 ? 1 : to == DataType::kF16 ? 10 : 16;
    return op("Cast", {value}, {{"to", number}});
  };
  Random random(3);
  for (std::int64_t i = 0; i < kWidth; ++i) built.weight.push_back(1 + 0.3 * random.normal());
  for (std::int64_t i = 0; i < kWidth; ++i) built.bias.push_back(random.normal());
  built.weight = as_doubles(numbers(type, {kWidth}, built.weight));
  built.bias = as_doubles(numbers(type, {kWidth}, built.bias));

  const DataType inside = form.wide_inside ? DataType::kF32 : type;
  const DataType square = form.wide_square ? DataType::kF32 : inside;
  ValueId x = g.add_input("x", type, symbolic({3, kWidth}));
  if (form.wide_inside) x = cast(x, DataType::kF32);
  if (!form.rms) x = op("Sub", {x, op("ReduceMean", {x}, kLastAxis)});
  ValueId base = form.wide_square ? cast(x, DataType::kF32) : x;
  base = op("Pow", {base, constant("two", square, {}, {2})});
  ValueId root = op("Sqrt", {op("Add", {op("ReduceMean", {base}, kLastAxis), constant("eps", square, {}, {1e-3})})});
  if (form.wide_square) root = cast(root, type);
  ValueId y = form.reciprocal ? op("Mul", {x, op("Reciprocal", {root})}) : op("Div", {x, root});
  if (form.wide_inside) y = cast(y, type);
  y = op("Mul", {constant("weight", type, {kWidth}, built.weight), y});
  if (form.bias) y = op("Add", {y, constant("bias", type, {kWidth}, built.bias)});
  g.add_output("y", y);
  return built;
}

TEST(NarrowNorms, AreFoundAndRoundedOnce) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (int bits = 0; bits < 32; ++bits) {
      const Form form{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if ((form.wide_inside && form.wide_square) || (form.rms && form.bias)) continue;
      SCOPED_TRACE(std::string(type_name(type)) + " form " + std::to_string(bits));
      const Built built = build(type, form);
      FusionReport report;
      const Graph fused = fuse(built.graph, all_ops(), &report);
      ASSERT_EQ(report.count(form.rms ? "RMSNormalization" : "LayerNormalization"), 1) << report.text();
      // (x − mean)² reaches 10⁶ and more, beyond f16.
      Random random(8);
      std::vector<double> x;
      for (std::int64_t i = 0; i < 3 * kWidth; ++i) x.push_back((i < kWidth ? 1000 : 1) * random.normal());
      const Tensor input = numbers(type, {3, kWidth}, x);
      x = as_doubles(input);
      const Tensor y =
          std::move(Session(fused, all_ops()).run(std::vector<ConstTensorView>{input.view()}, Threads::serial())[0]);
      ASSERT_EQ(y.type(), type);
      const DataType inside = form.wide_inside || form.wide_square ? DataType::kF32 : type;
      const double epsilon = as_doubles(numbers(inside, {1}, {1e-3}))[0];
      for (std::size_t r = 0; r < 3; ++r) {
        double mean = 0, squares = 0;
        for (std::size_t i = 0; i < kWidth; ++i) mean += form.rms ? 0 : x[r * kWidth + i] / kWidth;
        for (std::size_t i = 0; i < kWidth; ++i) squares += std::pow(x[r * kWidth + i] - mean, 2);
        for (std::size_t i = 0; i < kWidth; ++i) {
          const double z = (x[r * kWidth + i] - mean) / std::sqrt(squares / kWidth + epsilon);
          const double exact = z * built.weight[i] + (form.bias ? built.bias[i] : 0);
          const double nearest = as_doubles(numbers(type, {1}, {exact}))[0];
          EXPECT_LE(std::abs(as_doubles(y)[r * kWidth + i] - exact),
                    std::abs(nearest - exact) + 1e-6 * (1 + std::abs(exact)));
        }
      }
    }
  }
}

TEST(NarrowNorms, ACastThatRoundsWhatIsNormalisedStays) {
  // x in f32, rounded to f16 and normalised there: the norm must see the rounded rows.
  Graph graph;
  const ValueId x = graph.add_input("x", DataType::kF32, symbolic({1, kWidth}));
  const ValueId rounded = graph.add_node("Cast", "round", {x}, {{"to", std::int64_t{10}}});
  const ValueId wide = graph.add_node("Cast", "widen", {rounded}, {{"to", std::int64_t{1}}});
  const auto number = [&](const char* name, double value) {
    return graph.add_constant(name, std::make_shared<const Tensor>(floats({}, {value})));
  };
  const ValueId mean =
      graph.add_node("ReduceMean", "mean", {graph.add_node("Pow", "square", {wide, number("two", 2)})}, kLastAxis);
  const ValueId root = graph.add_node("Sqrt", "root", {graph.add_node("Add", "sum", {mean, number("eps", 1e-6)})});
  const ValueId weight =
      graph.add_constant("w", std::make_shared<const Tensor>(floats({kWidth}, std::vector<double>(kWidth, 1))));
  graph.add_output("y", graph.add_node("Mul", "y", {graph.add_node("Div", "z", {wide, root}), weight}));
  FusionReport report;
  const Graph fused = fuse(graph, all_ops(), &report);
  EXPECT_EQ(report.count("RMSNormalization"), 1);
  std::vector<double> values(kWidth, 1.0004);  // 1 in f16
  values[0] = 3;
  const Tensor input = floats({1, kWidth}, values);
  const Tensor y =
      std::move(Session(fused, all_ops()).run(std::vector<ConstTensorView>{input.view()}, Threads::serial())[0]);
  const double exact = 3 / std::sqrt((9 + 15.0) / 16 + 1e-6);
  EXPECT_NEAR(as_doubles(y)[0], exact, 1e-6);
}

double gelu(double x, bool tanh) {
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return tanh ? 0.5 * x * (1 + std::tanh(u)) : 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

TEST(NarrowActivations, GeluAndSiluAreRoundedOnce) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const char* kind : {"erf", "tanh", "silu"}) {
      SCOPED_TRACE(std::string(type_name(type)) + ' ' + kind);
      const std::string_view form = kind;
      Graph g;
      const auto number = [&](double value) {
        return g.add_constant("c" + std::to_string(g.num_values()),
                              std::make_shared<const Tensor>(numbers(type, {}, {value})));
      };
      const auto op = [&](const char* name, std::vector<ValueId> inputs) {
        return g.add_node(name, name + std::to_string(g.nodes().size()), std::move(inputs));
      };
      const ValueId x = g.add_input("x", type, symbolic({200}));
      if (form == "silu") {
        g.add_output("y", op("Mul", {x, op("Sigmoid", {x})}));
      } else {
        ValueId gate = kNoValue;
        if (form == "erf") {
          gate = op("Erf", {op("Div", {x, number(std::sqrt(2.0))})});
        } else {
          const ValueId cube = op("Mul", {op("Pow", {x, number(3)}), number(0.044715)});
          gate = op("Tanh", {op("Mul", {op("Add", {x, cube}), number(std::sqrt(2 / std::numbers::pi))})});
        }
        g.add_output("y", op("Mul", {op("Mul", {x, op("Add", {gate, number(1)})}), number(0.5)}));
      }
      FusionReport report;
      const Graph fused = fuse(g, all_ops(), &report);
      ASSERT_EQ(report.count(form == "silu" ? "Swish" : "Gelu"), 1) << report.text();
      Random random(2);
      std::vector<double> values;
      for (int i = 0; i < 200; ++i) values.push_back(3 * random.normal());
      const Tensor input = numbers(type, {200}, values);
      values = as_doubles(input);
      const auto y =
          as_doubles(Session(fused, all_ops()).run(std::vector<ConstTensorView>{input.view()}, Threads::serial())[0]);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double v = values[i];
        const double exact = form == "silu" ? v / (1 + std::exp(-v)) : gelu(v, form == "tanh");
        const double nearest = as_doubles(numbers(type, {1}, {exact}))[0];
        EXPECT_LE(std::abs(y[i] - exact), std::abs(nearest - exact) + 1e-6 * std::abs(v)) << "at " << v;
      }
    }
  }
}

TEST(FusionReport, TellsNativeFromFused) {
  const auto report_of = [](DataType type) {
    Graph graph;
    std::vector<ValueId> inputs;
    for (const char* name : {"q", "k", "v"}) inputs.push_back(graph.add_input(name, type, symbolic({1, 4, 6, 8})));
    graph.add_output("y", graph.add_node("onnx.Attention", "attention", inputs));
    FusionReport report;
    fuse(graph, all_ops(), &report);
    return report;
  };
  const FusionReport narrow = report_of(DataType::kF16);
  EXPECT_EQ(narrow.count("attention"), 0);
  ASSERT_EQ(narrow.native.size(), 1u);
  EXPECT_EQ(narrow.native[0].op, "onnx.Attention");
  expect_contains(narrow.text(), "native: onnx.Attention 1");
  const FusionReport wide = report_of(DataType::kF32);
  EXPECT_EQ(wide.count("attention"), 1);
  EXPECT_TRUE(wide.native.empty());
}

}  // namespace
}  // namespace headway::testing
